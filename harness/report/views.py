"""Report -> what the page says, as words and layouts. No figure is computed here: only named, formatted and placed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.report import figures, formats
from harness.report.draw import plots, timeline
from harness.report.draw.sheet import Sheet
from harness.report.model import ClaimSeen, Fault, Member, Repeat, Report, Slo

REASONS_SHOWN = 8
CLAIMS_SHOWN = 60
MEMBERS_SHOWN = 80
DRAWN_REPEATS = 10
TILES = ("detect_s", "first_step_s", "recover_s", "lost_steps", "goodput")


@dataclass(frozen=True, slots=True)
class Tile:
    """A key figure."""

    title: str
    value: str
    note: str


@dataclass(frozen=True, slots=True)
class SloRow:
    """One line of the table of SLOs."""

    slo: Slo
    title: str
    worst: str
    median: str
    passed: str
    limit: str
    meter: plots.Meter | None


@dataclass(frozen=True, slots=True)
class FigureRow:
    """One line of the table of figures."""

    name: str
    title: str
    doc: str
    value: str
    limit: str
    n: int
    statistics: list[str]
    strip: plots.Strip | None


@dataclass(frozen=True, slots=True)
class FaultRow:
    """A fault with its times in words."""

    fault: Fault
    injected: str
    effective: str
    healed: str


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A claim with its times in words."""

    claim: ClaimSeen
    culprit: str
    at: str
    said: str


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member with its times in words."""

    member: Member
    joined: str
    held: str
    exited: str


@dataclass(frozen=True, slots=True)
class Featured:
    """The repeat that is drawn in full."""

    repeat: Repeat
    whole: Sheet
    whole_text: str
    zoomed: Sheet | None
    zoom_text: str
    step_times: plots.Plot | None
    step_text: str
    losses: plots.Plot | None
    loss_text: str
    faults: list[FaultRow]
    claims: list[ClaimRow]
    claims_more: str
    members: list[MemberRow]
    members_more: str


@dataclass(frozen=True, slots=True)
class RepeatItem:
    """One repeat in the list of all."""

    id: str
    repeat: Repeat
    text: str
    zoomed: Sheet | None
    is_featured: bool


@dataclass(frozen=True, slots=True)
class View:
    """The whole page."""

    many: bool
    repeats_text: str
    run_text: str
    reasons: list[str]
    reasons_more: str
    tiles: list[Tile]
    slos: list[SloRow]
    figures: list[FigureRow]
    absent: str
    unknown: list[tuple[str, str]]
    badput: str
    featured: Featured | None
    featured_why: str
    repeats: list[RepeatItem]
    environment: list[tuple[str, str]]


def view(report: Report) -> View:
    """Return everything the page shows."""
    many = len(report.repeats) > 1
    chosen = None if report.featured is None else report.repeats[report.featured]
    unknown = {name: why for repeat in reversed(report.repeats) for name, why in repeat.unknown.items()}
    absent = [name for name in figures.names(report) if name not in report.summary and name not in unknown]
    return View(
        many=many,
        repeats_text=formats.count(len(report.repeats), "repeat"),
        run_text=run_text(report),
        # The headline says the first reason already where it is the only one.
        reasons=[] if report.reasons[:1] == [report.headline] == report.reasons else report.reasons[:REASONS_SHOWN],
        reasons_more=_more(len(report.reasons), REASONS_SHOWN, "reason"),
        tiles=tiles(report),
        slos=[slo_row(slo) for slo in report.slos],
        figures=[_figure_row(report, name) for name in figures.names(report) if name in report.summary],
        absent=", ".join(absent),
        unknown=list(unknown.items()),
        badput="" if chosen is None else badput_text(chosen),
        featured=None if chosen is None else _featured(chosen),
        featured_why="the slowest" if report.verdict == "PASS" else "it decided the verdict",
        repeats=_repeats(report) if many else [],
        environment=environment_rows(report),
    )


def _more(total: int, shown: int, word: str) -> str:
    return f"… and {formats.count(total - shown, f'more {word}')}" if total > shown else ""


def run_text(report: Report) -> str:
    """Return what ran, in one line."""
    about = report.about
    spares = f" + {formats.count(about.spares, 'warm spare')}" if about.spares else ""
    return (
        f"{about.workload}; {formats.count(about.ranks, 'rank')}{spares} on {formats.count(about.nodes, 'node')}, "
        f"{formats.count(about.steps, 'step')}; stack {about.stack}, launched on {about.launch}"
    )


def environment_rows(report: Report) -> list[tuple[str, str]]:
    """Return the environment as names and values."""
    env = report.environment
    return [
        ("rankdrill", env.rankdrill),
        ("Python", env.python),
        ("torch", env.torch or "not installed"),
        ("Kernel", env.kernel),
        ("Processor", env.cpu),
        ("Cores", str(env.cores)),
        ("Memory", "unknown" if env.memory_gib is None else f"{env.memory_gib:g} GiB"),
        ("Load", " / ".join(f"{load:.2f}" for load in env.load_average) + " (1, 5, 15 min, at the start)"),
        ("Host", f"{env.host} (hash)"),
        ("Scenario", report.about.file),
        ("Tags", ", ".join(report.about.tags) or "none"),
    ]


def tiles(report: Report) -> list[Tile]:
    """Return the key figures that apply."""
    result = []
    for name in TILES:
        stats = report.summary.get(name)
        if stats is None:
            continue
        slo = next((slo for slo in report.slos if slo.slo == name), None)
        notes = [] if slo is None else [f"limit {formats.limit(slo)}"]
        if stats.n > 1 and stats.min != stats.max:
            notes.insert(0, f"{formats.figure(name, stats.min)} – {formats.figure(name, stats.max)}")
        title = f"{formats.title(name)}{' (median)' if stats.n > 1 else ''}"
        result.append(Tile(title, formats.figure(name, stats.p50), " · ".join(notes)))
    return result


def slo_row(slo: Slo) -> SloRow:
    """Return one line of the table of SLOs."""
    return SloRow(
        slo=slo,
        title=formats.title(slo.slo),
        worst=formats.figure(slo.slo, slo.worst),
        median=formats.figure(slo.slo, slo.median),
        passed=f"{slo.passed} of {slo.of}",
        limit=formats.limit(slo),
        meter=plots.meter(slo),
    )


def _figure_row(report: Report, name: str) -> FigureRow:
    stats = report.summary[name]
    slo = next((slo for slo in report.slos if slo.slo == name), None)
    values = [repeat.figures.get(name) for repeat in report.repeats]
    return FigureRow(
        name=name,
        title=formats.title(name),
        doc=figures.doc(name),
        value=formats.figure(name, values[0] if len(values) == 1 else stats.p50),
        limit="" if slo is None else formats.limit(slo),
        n=stats.n,
        statistics=[formats.figure(name, value) for value in (stats.min, stats.p50, stats.p95, stats.max)],
        strip=plots.strip(name, values, stats.p50, slo),
    )


def _repeats(report: Report) -> list[RepeatItem]:
    items = []
    drawn = 0
    for index, repeat in enumerate(report.repeats):
        is_featured = index == report.featured
        zoomed = None
        if not is_featured and drawn < DRAWN_REPEATS:
            zoomed = timeline.zoomed(repeat.timeline)
            drawn += 1
        items.append(RepeatItem(f"r{repeat.number}", repeat, key_figures(repeat), zoomed, is_featured))
    return items


def key_figures(repeat: Repeat) -> str:
    """Return a repeat's key figures in one line."""
    known = [(name, value) for name in TILES if (value := repeat.figures.get(name)) is not None]
    return " · ".join(f"{formats.title(name)} {formats.figure(name, value)}" for name, value in known)


def badput_text(repeat: Repeat) -> str:
    """Return the time that a drill lost, by cause; empty where nothing is known of it."""
    lost = [(cause, lost_s) for cause, lost_s in repeat.badput_s.items() if lost_s > 0]
    return ", ".join(f"{formats.line(cause).replace('_', ' ')} {formats.seconds(lost_s)}" for cause, lost_s in lost)


def _featured(repeat: Repeat) -> Featured:
    drawing = repeat.timeline
    return Featured(
        repeat=repeat,
        whole=timeline.whole(drawing),
        whole_text=_whole_text(repeat),
        zoomed=timeline.zoomed(drawing),
        zoom_text=_zoom_text(repeat),
        step_times=plots.step_times(drawing, repeat.steady),
        step_text=_step_text(repeat),
        losses=plots.losses(drawing),
        loss_text=_loss_text(repeat),
        faults=[fault_row(fault) for fault in repeat.faults],
        claims=[_claim_row(claim) for claim in drawing.claims[:CLAIMS_SHOWN]],
        claims_more=_more(len(drawing.claims), CLAIMS_SHOWN, "claim"),
        members=_member_rows(repeat),
        members_more=_more(len(drawing.members), MEMBERS_SHOWN, "member"),
    )


def _whole_text(repeat: Repeat) -> str:
    drawing = repeat.timeline
    starts = [track.start_s[0] for track in drawing.tracks if track.start_s]
    if not starts:
        return "No rank completed a step."
    frame = " The framed stretch is enlarged below." if drawing.zoom is not None else ""
    began = formats.seconds(min(starts))
    return (
        f"The first step began {began} after the drill's first process; start-up and tidying up are not drawn.{frame}"
    )


def _zoom_text(repeat: Repeat) -> str:
    small = len(repeat.timeline.tracks) > 12
    rows = " Ranks that a fault touched are drawn large, the others small." if small else ""
    return f"One row a rank; who held it stands on the right.{rows}"


def _step_text(repeat: Repeat) -> str:
    steady = repeat.steady
    if steady is None:
        return "A steady state was never reached, so there is no step limit."
    return (
        f"Steady state: median {formats.seconds(steady.median_s)}, MAD {formats.seconds(steady.mad_s)}; step limit "
        f"{formats.seconds(steady.limit_s)} = max(1.1 × median, median + 4.5 × MAD). The red line is the fault; "
        "a triangle is a step that is slower than the plot is high, with its time."
    )


def _loss_text(repeat: Repeat) -> str:
    losses = repeat.timeline.losses
    if not losses.reference:
        return "There is no reference run to compare with."
    if losses.max_difference is None:
        return "Wide pale line: the unfaulted reference run. The two share no step."
    if losses.max_difference == 0:
        return "Wide pale line: the unfaulted reference run with the same seed. The losses are equal at every step."
    return (
        "Wide pale line: the unfaulted reference run with the same seed. "
        f"Largest difference at one step: {losses.max_difference:.3g}."
    )


def fault_row(fault: Fault) -> FaultRow:
    """Return a fault with its times in words."""
    return FaultRow(
        fault=fault,
        injected=_at(fault.injected_at_s, "not injected"),
        effective=_effective(fault),
        healed=_at(fault.healed_at_s, "not healed by us"),
    )


def _effective(fault: Fault) -> str:
    if fault.effective_after_s is None:
        return "not proven"
    return f"+{formats.seconds(fault.effective_after_s)}"


def _at(value_s: float | None, absent: str) -> str:
    return absent if value_s is None else formats.clock(value_s)


def _claim_row(claim: ClaimSeen) -> ClaimRow:
    parts = [] if claim.rank is None else [f"rank {claim.rank}"]
    if claim.node is not None:
        parts.append(claim.node if claim.pid is None else f"{claim.node}/{claim.pid}")
    return ClaimRow(claim, ", ".join(parts) or "nobody", formats.clock(claim.at_s), formats.clock(claim.said_s))


def _member_rows(repeat: Repeat) -> list[MemberRow]:
    drawing = repeat.timeline
    rows = []
    for index, member in enumerate(drawing.members[:MEMBERS_SHOWN]):
        held: Sequence[str] = [
            f"rank {hold.rank} from {formats.clock(hold.from_s)}" for hold in drawing.holds if hold.member == index
        ]
        joined, exited = _at(member.joined_s, "unknown"), _at(member.exited_s, "not seen")
        rows.append(MemberRow(member, joined, "; ".join(held) or "no rank", exited))
    return rows
