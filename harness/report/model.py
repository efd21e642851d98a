"""report.json: what a report says, and nothing about how it looks. docs/report-schema.md is made from here.

Every number that a renderer shows is computed before it gets here (harness/report/build.py), so that all formats agree.
Times inside a repeat are seconds since that repeat's first process was about to be started, unless said otherwise.
Keys may be added within a schema version, and readers ignore those that they do not know; a changed meaning or a
removed key makes a new version.
"""

from __future__ import annotations

from typing import Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from harness.report.values import FigureValue, Number, RunText

SCHEMA_VERSION = 1

VerdictWord = Literal["PASS", "FAIL", "INCONCLUSIVE", "ERROR"]
MarkKind = Literal["injected", "effective", "detected", "swapped", "restored", "first_step", "recovered", "healed"]


class Part(BaseModel):
    """Base of every part of a report."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class About(Part):
    """What was drilled, as the scenario says it."""

    file: RunText = Field(description="scenario file, as it was given")
    claim: RunText = Field(description="what a PASS says")
    why: RunText = Field(description="the real incident kind behind it")
    certifies: list[RunText] = Field(description="what a PASS certifies")
    not_: list[RunText] = Field(
        validation_alias=AliasChoices("not", "not_"),
        serialization_alias="not",
        description="what a PASS does not certify",
    )
    tags: list[RunText] = Field(default=[], description="the scenario's tags")
    workload: RunText = Field(description="program or command, with its arguments")
    ranks: int = Field(description="world size")
    spares: int = Field(description="warm spares at the start")
    nodes: int = Field(description="nodes")
    steps: int = Field(description="steps asked for")
    stack: RunText = Field(description="stack under test, with its limits preset")
    launch: RunText = Field(description="launcher")
    backend: list[RunText] = Field(description="communication backend, and what it does not certify")


class Environment(Part):
    """The machine and the software that the figures belong to."""

    rankdrill: str = Field(description="version of rankdrill")
    python: str = Field(description="version of Python")
    torch: str | None = Field(description="version of torch, null where none is installed")
    kernel: str = Field(description="system and kernel release")
    cpu: str = Field(description="processor model")
    cores: int = Field(description="cores this process may use")
    memory_gib: float | None = Field(description="main memory in GiB")
    load_average: list[float] = Field(description="1, 5 and 15 minute load averages when the drill began")
    host: str = Field(description="hash that tells hosts apart without naming them")


class SteadyState(Part):
    """Step times before the first fault; the limit is what `recover_s` is judged by."""

    from_step: int | None = Field(description="first step of the steady stretch")
    to_step: int | None = Field(description="last step of the steady stretch")
    median_s: float = Field(description="median step time in seconds")
    mad_s: float = Field(description="median absolute deviation in seconds")
    limit_s: float = Field(description="step limit: max(1.1 × median, median + 4.5 × MAD)")


class Fault(Part):
    """One injected fault and the proof that it took effect."""

    id: RunText = Field(description="f0, f1, … in the order of the scenario file")
    kind: RunText = Field(description="kill, stop, …")
    target: RunText = Field(description="who was hit")
    injected_at_s: float | None = Field(description="just before the injecting call; null: never injected")
    effective_at_s: float | None = Field(description="when a measurement showed the effect")
    effective_after_s: float | None = Field(description="injected → effect shown")
    healed_at_s: float | None = Field(description="when our undo was verified; null: holds to the end")
    proof: RunText = Field(description="the measurement, or why there is none")
    ranks: list[int] = Field(default=[], description="ranks hit")


class Check(Part):
    """One SLO of one repeat."""

    slo: RunText = Field(description="figure, `weights`, or a rule that always holds")
    limit: RunText = Field(description="limit in words")
    value: FigureValue = Field(description="measured value")
    verdict: VerdictWord = Field(description="verdict of this check")
    reason: RunText = Field(description="why, in words")
    op: Literal["max", "min", "equal"] = Field(description="which side of the limit is met")
    limit_value: Number | None = Field(description="limit in the figure's unit; null where it is no number")


class Member(Part):
    """One process that held a rank or stood by."""

    name: RunText = Field(description="node/pid")
    node: RunText = Field(description="node")
    pid: int = Field(description="process id on its node")
    role: RunText = Field(description="member or spare, at joining")
    joined_s: float | None = Field(description="ready to hold a rank")
    exited_s: float | None = Field(description="process end seen by the tester; null: not before the end")
    exit: RunText = Field(description="exit code or signal in words")
    clean: bool = Field(description="it finished its training or ended with exit code 0")


class Track(Part):
    """The steps of one rank, as columns of equal length in order of completion."""

    rank: int = Field(description="rank")
    step: list[int] = Field(description="step number")
    start_s: list[float] = Field(description="start; where the program does not say, the end of the step before")
    end_s: list[float] = Field(description="completion")
    generation: list[int] = Field(description="membership of the process group")
    member: list[int] = Field(description="index into `members`")
    redone: list[bool] = Field(description="this rank had completed the step before")


class Hold(Part):
    """A member holds a rank for a while."""

    rank: int = Field(description="rank")
    member: int = Field(description="index into `members`")
    from_s: float = Field(description="it took the rank")
    to_s: float = Field(description="another took it, it ended, or the drill did")
    generation: int = Field(description="generation in which it took the rank")


class Mark(Part):
    """A moment that the timeline shows with a line and a label."""

    kind: MarkKind = Field(description="what happened")
    at_s: float = Field(description="when")
    after_s: float = Field(description="seconds since its own fault was injected")
    text: RunText = Field(description="label")
    ranks: list[int] = Field(default=[], description="ranks concerned; empty: all")


class ClaimSeen(Part):
    """What the stack said was wrong, when the tester read it."""

    at_s: float = Field(description="receipt by the tester")
    said_s: float = Field(description="the stack's own time")
    kind: RunText = Field(description="crash, hang, …")
    rank: int | None = Field(description="culprit: rank")
    node: RunText | None = Field(description="culprit: node")
    pid: int | None = Field(description="culprit: process")
    confirmed: bool = Field(description="false: a suspicion (yellow card)")
    judged: RunText = Field(description="right, suspicion, ambient, false alarm, wrong blame, vague or undecided")
    detail: RunText = Field(description="the stack's own words")


class WorldStep(Part):
    """A step completed by the whole world."""

    step: int = Field(description="step number")
    generation: int = Field(description="membership of the process group")
    at_s: float = Field(description="completion by the last rank")
    duration_s: float | None = Field(description="since the whole world completed the step before")


class Span(Part):
    """A stretch of time."""

    from_s: float = Field(description="beginning")
    to_s: float = Field(description="end")


class Dead(Span):
    """A stretch without a step of the whole world."""

    ends: bool = Field(description="false: no step came any more")


class Losses(Part):
    """Loss a step: index 0 is step 1; null where none was recorded."""

    run: list[Number | None] = Field(description="mean over the whole world")
    reference: list[Number | None] = Field(description="of the unfaulted run with the same seed; empty: none")
    max_difference: Number | None = Field(description="largest difference at one step; null: nothing to compare")


class Drawing(Part):
    """What the tester saw, ready to be drawn."""

    end_s: float = Field(description="last observation")
    ended: RunText = Field(description="how the run ended")
    world: int = Field(description="world size")
    members: list[Member] = Field(description="in order of appearance")
    tracks: list[Track] = Field(description="by rank")
    holds: list[Hold] = Field(description="by rank and time")
    marks: list[Mark] = Field(description="by time")
    claims: list[ClaimSeen] = Field(description="in order of receipt")
    dead: list[Dead] = Field(description="no step was completed by the whole world: injected → first step")
    zoom: Span | None = Field(description="the stretch around the faults; null: nothing was injected")
    affected: list[int] = Field(description="ranks that faults hit or that changed hands")
    world_steps: list[WorldStep] = Field(description="in order of completion")
    losses: Losses = Field(description="where the program records them")


class Repeat(Part):
    """One drill."""

    number: int = Field(description="1, 2, …")
    seed: int = Field(description="seed of this drill")
    verdict: VerdictWord = Field(description="of this drill")
    exit_code: int = Field(description="of this drill")
    reasons: list[RunText] = Field(description="why it is no PASS; empty for a PASS")
    figures: dict[str, FigureValue] = Field(description="see the table of figures")
    unknown: dict[str, RunText] = Field(default={}, description="why a figure is null although it applies, by figure")
    badput_s: dict[str, float] = Field(default={}, description="seconds lost, by cause")
    faults: list[Fault] = Field(description="in the order of the scenario file")
    checks: list[Check] = Field(description="limits in the order of the scenario file, then rules that always hold")
    steady: SteadyState | None = Field(description="null: never reached")
    duration_s: float = Field(description="from the first process started to the last observation")
    timeline: Drawing = Field(description="for drawing")


class Slo(Part):
    """One SLO over all repeats, the worst repeat first to be named."""

    slo: RunText = Field(description="figure, or a rule that always holds")
    limit: RunText = Field(description="limit in words")
    op: Literal["max", "min", "equal"] = Field(description="which side of the limit is met")
    limit_value: Number | None = Field(description="limit in the figure's unit; in steps: of the first repeat")
    verdict: VerdictWord = Field(description="worst verdict of all repeats")
    passed: int = Field(description="repeats that passed")
    of: int = Field(description="repeats in which it was checked")
    values: list[FigureValue] = Field(description="measured, in the order of the repeats")
    median: FigureValue = Field(description="median of the numbers; null where they are none")
    worst: FigureValue = Field(description="value of the repeat that misses the limit most, or comes closest")
    reason: RunText = Field(description="of the first repeat with the worst verdict")


class Summary(Part):
    """A figure over all repeats; repeats where it is null are left out. true counts 1, false 0."""

    n: int = Field(description="repeats that have the figure")
    min: Number = Field(description="smallest")
    p50: Number = Field(description="median")
    p95: Number = Field(description="nearest rank: the smallest value that 95 % of the repeats do not exceed")
    max: Number = Field(description="largest")


class Report(Part):
    """The whole report."""

    schema_version: Literal[1] = Field(default=1, description="1")
    scenario: RunText = Field(description="name of the scenario")
    verdict: VerdictWord = Field(description="of all repeats together: ERROR > FAIL > INCONCLUSIVE > PASS")
    exit_code: int = Field(description="0 PASS, 1 FAIL, 2 INCONCLUSIVE, 3 ERROR")
    seed: int = Field(description="seed that was asked for")
    started_at: str = Field(description="UTC, ISO 8601")
    headline: RunText = Field(description="the result in one sentence")
    reasons: list[RunText] = Field(description="why it is no PASS; empty for a PASS")
    replay: RunText = Field(description="command that runs the same drill again")
    about: About = Field(description="what was drilled")
    environment: Environment = Field(description="where")
    repeats: list[Repeat] = Field(description="each drill")
    featured: int | None = Field(
        description="index of the repeat that decided the verdict; when all passed, of the slowest"
    )
    slos: list[Slo] = Field(description="failed ones first")
    summary: dict[str, Summary] = Field(description="by figure")

    def to_json(self) -> str:
        """Return the text of report.json."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"
