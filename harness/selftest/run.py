"""Shows that the tester catches broken stacks, each for the right reason, and passes the sound one.

One sound drill is run live; from its timeline come the stacks that break what can be seen from outside. Those that
break the training itself (weights, samples, processes) are run live too, as the same workload with one thing wrong
after the swap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from harness.drill.execute import Tools
from harness.drill.interrupt import Interrupt
from harness.drill.perform import Drill, run_drill
from harness.drill.progress import Silent
from harness.errors import HarnessError
from harness.judge.outcome import Verdict
from harness.judge.verdict import Judgement, judge
from harness.observe.timeline import Timeline
from harness.run import STACKS
from harness.scenario import Scenario, load
from harness.selftest import timelines

SOUND = Path(__file__).resolve().parents[2] / "scenarios" / "selftest" / "sound.yaml"


@dataclass(frozen=True, slots=True)
class BrokenStack:
    """A stack that is broken in one way, and the check that must say so.

    `check` None: the drill must be INCONCLUSIVE.
    """

    name: str
    check: str | None
    wrap: Callable[[Timeline], Timeline] | None = None
    way: str | None = None


BROKEN = (
    BrokenStack("alarms falsely", "false_alarms", wrap=timelines.false_alarm),
    BrokenStack("blames a neighbour", "wrong_blame", wrap=timelines.blames_a_neighbour),
    BrokenStack("never recovers", "first_step_s", wrap=timelines.never_recovers),
    BrokenStack("loses a step", "lost_steps", wrap=timelines.loses_a_step),
    BrokenStack("restarts everyone (as seen)", "bystanders_restarted", wrap=timelines.restarts_everyone),
    BrokenStack("hides a rank's steps", None, wrap=timelines.steps_out_of_sight),
    BrokenStack("skips a sample", "samples_skipped", way="skip-sample"),
    BrokenStack("redoes a step silently", "weights", way="redo-step"),
    BrokenStack("uses another random stream after the swap", "weights", way="random-stream"),
    BrokenStack("restarts everyone", "bystanders_restarted", way="restart-all"),
)


@dataclass(frozen=True, slots=True)
class Proof:
    """What the tester said of one stack, and whether that was right."""

    name: str
    expected: str
    said: str
    right: bool


def main() -> int:
    """Run all, print a line each; 0 only if every one was judged rightly."""
    console = Console(highlight=False)
    proofs = []
    with Interrupt() as interrupt:
        tools = Tools(interrupt, Silent())
        scenario = load(SOUND)
        console.print("running the sound stack, then each broken one that must run live; this takes about a minute")
        sound = _run(scenario, tools)
        proofs.append(_shown(console, prove_sound(sound.judgement)))
        if proofs[0].right:
            proofs += [_shown(console, prove(broken, _judged(broken, scenario, sound, tools))) for broken in BROKEN]
    wrong = [proof.name for proof in proofs if not proof.right]
    if wrong:
        console.print(f"[bold red]self-test failed[/]: {escape(', '.join(wrong))}")
        return 1
    console.print(f"[bold green]self-test passed[/]: {len(BROKEN)} broken stacks caught, the sound one passed")
    return 0


def prove_sound(judgement: Judgement) -> Proof:
    """The sound stack must pass."""
    said = str(judgement.verdict) if not judgement.reasons else f"{judgement.verdict}: {judgement.reasons[0]}"
    return Proof("the sound stack", "PASS", said, judgement.verdict is Verdict.PASS)


def prove(broken: BrokenStack, judgement: Judgement) -> Proof:
    """A broken stack must FAIL, and the check that knows must be among those that failed."""
    failed = [check.slo for check in judgement.checks if check.verdict is Verdict.FAIL]
    if broken.check is None:
        right = judgement.verdict is Verdict.INCONCLUSIVE
        return Proof(broken.name, "INCONCLUSIVE", f"{judgement.verdict} {', '.join(failed)}".rstrip(), right)
    right = judgement.verdict is Verdict.FAIL and broken.check in failed
    return Proof(broken.name, f"FAIL {broken.check}", f"{judgement.verdict} {', '.join(failed)}".rstrip(), right)


def _judged(broken: BrokenStack, scenario: Scenario, sound: Drill, tools: Tools) -> Judgement:
    if broken.wrap is not None:
        return judge(broken.wrap(sound.timeline), sound.plan, sound.reference)
    workload = scenario.workload.model_copy(update={"args": {"break": broken.way}})
    # Until its first regroup the broken program is the sound one, so the sound one's unfaulted run is its yardstick.
    return _run(scenario.model_copy(update={"workload": workload}), tools, reference=sound).judgement


def _run(scenario: Scenario, tools: Tools, reference: Drill | None = None) -> Drill:
    drill = run_drill(
        scenario,
        scenario.seed,
        stack=STACKS[scenario.stack.name],
        tools=tools,
        reference=None if reference is None else reference.reference,
    )
    if drill.interrupted is not None:
        raise HarnessError(f"the self-test was ended by {drill.interrupted}")
    return drill


def _shown(console: Console, proof: Proof) -> Proof:
    mark = "[green]right[/]" if proof.right else "[bold red]WRONG[/]"
    console.print(f"{mark}  {escape(proof.name)}: expected {escape(proof.expected)}, judged {escape(proof.said)}")
    return proof
