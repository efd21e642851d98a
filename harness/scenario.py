"""Scenario files: YAML -> Scenario. An error names file, line, field, what was expected and the nearest valid word.

`load` refuses everything that can be known to be wrong before a process is started; `harness.scenario_checks` holds
the rules that need more than one field. The JSON Schema comes from the same models and tables.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    InstanceOf,
    PrivateAttr,
    ValidationError,
    WithJsonSchema,
)

from chaos.fault import Fault
from harness import fault_text
from harness.errors import UsageError
from harness.problems import Problem, from_validation, problem_line, scenario_error
from harness.scenario_checks import find_program, refusals, warnings
from harness.slo import Slo, parse_slo, percentile_problems
from harness.slo import json_schema as slo_schema
from harness.strict_yaml import Document, read_document

SHIPPED = Path(__file__).resolve().parent.parent / "scenarios"
SCHEMA_ID = "https://json-schema.org/draft/2020-12/schema"

_SLUG = r"[a-z0-9]+(-[a-z0-9]+)*"
_OPTION = r"[a-zA-Z][a-zA-Z0-9_-]*"
_RESERVED_ARGS = ("seed", "steps")


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not finite")
    return value


Sentence = Annotated[str, Field(min_length=1, max_length=2000, pattern=r"\S")]
Slug = Annotated[str, Field(pattern=rf"^{_SLUG}$", max_length=64)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Faults = Annotated[tuple[InstanceOf[Fault], ...], WithJsonSchema(fault_text.json_schema())]
Limits = Annotated[InstanceOf[Slo], WithJsonSchema(slo_schema())]
Argument = Annotated[bool | int | float | str, AfterValidator(_finite)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Workload(_Part):
    """The training program and the size of its world."""

    program: str | None = Field(
        default=None, min_length=1, description="name of a shipped workload, or path of a .py file"
    )
    command: str | None = Field(default=None, min_length=1, description="a command line, for stacks that run commands")
    ranks: int = Field(ge=1, le=4096, description="a whole number of ranks from 1 to 4096")
    spares: int = Field(default=0, ge=0, le=4096, description="a whole number of warm spares, 0 or more")
    nodes: int = Field(default=1, ge=1, le=4096, description="a whole number of nodes, 1 or more")
    steps: int = Field(ge=1, le=1_000_000_000, description="a whole number of steps to train, 1 or more")
    args: dict[Annotated[str, Field(pattern=rf"^{_OPTION}$")], Argument] = Field(
        default_factory=dict, description="a mapping of option names to numbers, texts or true/false for the program"
    )


class Stack(_Part):
    """What is tested: who starts, watches and restarts the ranks."""

    name: Literal["reference", "torchrun"] = Field(default="reference", description="the stack under test")
    limits: Literal["ci", "production"] = Field(default="production", description="the preset of its time limits")
    port: int | None = Field(
        default=None, ge=0, le=65_535, description="a port from 0 to 65535, where 0 means any free one"
    )


class Launch(_Part):
    """Where nodes run."""

    on: Literal["local"] = Field(default="local", description="where nodes run")


class Scenario(_Part):
    """One drill: a claim, the run it is made about, the faults that test it and the limits that decide."""

    scenario: Slug = Field(description="a name of lower-case words and digits joined by '-', at most 64 characters")
    claim: Sentence = Field(description="a sentence: what a pass shows")
    why: Sentence = Field(description="a sentence: the real incident behind it")
    certifies: tuple[Slug, ...] = Field(min_length=1, description="a list of at least one word: what a pass certifies")
    not_: tuple[Slug, ...] = Field(alias="not", description="a list of words: what a pass does not say")
    workload: Workload = Field(description="a mapping: the training program and its size")
    stack: Stack = Field(default_factory=Stack, description="a mapping: the stack under test")
    launch: Launch = Field(default_factory=Launch, description="a mapping: where nodes run")
    faults: Faults = Field(
        min_length=1, description="a list of at least one fault; 'noop' is the one that does nothing"
    )
    slo: Limits = Field(description="a mapping of figures to limits, at least one")
    repeat: int = Field(default=1, ge=1, le=1000, description="a whole number of repeats from 1 to 1000")
    seed: int = Field(default=0, ge=0, lt=2**32, description="a whole number from 0 to 4294967295")
    tags: tuple[Slug, ...] = Field(default=(), description="a list of words")
    steady_within_s: Seconds = Field(default=60.0, description="seconds, more than 0 and at most a day")
    horizon_s: Seconds = Field(default=120.0, description="seconds, more than 0 and at most a day")

    _document: Document = PrivateAttr()
    _program: Path | Problem = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Remember the file (`context` is its Document) and look for the training program."""
        if not isinstance(context, Document):
            raise TypeError("a Scenario is read from a file: use harness.scenario.load")
        self._document = context
        self._program = find_program(self.workload.program, (context.path.resolve().parent, SHIPPED))

    @property
    def path(self) -> Path:
        """The file this scenario was loaded from."""
        return self._document.path

    @property
    def program_path(self) -> Path:
        """The training program, as an absolute path. Raises ScenarioError when there is none."""
        if isinstance(self._program, Problem):
            raise scenario_error(self._document, [self._program])
        return self._program

    def problems(self) -> list[Problem]:
        """Return everything for which the scenario is refused, although each field by itself is well formed."""
        found = [*_argument_problems(self), *refusals(self)]
        if isinstance(self._program, Problem) and self.workload.program is not None:
            found.append(self._program)
        return found

    def warnings(self) -> tuple[str, ...]:
        """Return what is likely to make the verdict INCONCLUSIVE or to mislead, one line each."""
        document = self._document
        return tuple(problem_line(document, found.place, f"warning: {found}") for found in warnings(self))

    def describe(self) -> str:
        """Return what would run, in a few words."""
        work = self.workload
        spares = f" + {work.spares} spare{'s' * (work.spares != 1)}" if work.spares else ""
        faults = "; ".join(fault.describe() for fault in self.faults)
        return f"{work.ranks} ranks{spares} on {work.nodes} nodes, {work.steps} steps, {self.stack.name}: {faults}"

    def override(self, *, repeat: int | None = None, seed: int | None = None) -> Scenario:
        """Return the scenario with other repeats or another seed. Raises UsageError when they do not fit."""
        if repeat is not None and not 1 <= repeat <= 1000:
            raise UsageError(f"--repeat: expected a whole number from 1 to 1000, found {repeat}")
        if seed is not None and not 0 <= seed < 2**32:
            raise UsageError(f"--seed: expected a whole number from 0 to {2**32 - 1}, found {seed}")
        changes = {"repeat": repeat, "seed": seed}
        changed = self.model_copy(update={key: value for key, value in changes.items() if value is not None})
        for problem in percentile_problems(self.slo, changed.repeat, ("slo",)):
            raise UsageError(f"--repeat: {problem}")
        return changed


def load(path: Path) -> Scenario:
    """Read one scenario file. Raises ScenarioError of one to three lines; nothing is started."""
    document = read_document(path)
    fields: dict[str, Any] = dict(document.data)
    problems: list[Problem] = []
    if "faults" in fields:
        faults, found = fault_text.parse_faults(fields["faults"], ("faults",))
        problems.extend(found)
        fields["faults"] = faults
    if "slo" in fields:
        fields["slo"], found = parse_slo(fields["slo"], ("slo",))
        problems.extend(found)
    named = {problem.place[0] for problem in problems}
    try:
        scenario = Scenario.model_validate(fields, context=document)
    except ValidationError as error:
        # A fault or limit that could not be read was already named, better than by its absence.
        problems.extend(found for found in from_validation(error, Scenario, document) if found.place[0] not in named)
        raise scenario_error(document, problems) from None
    problems = problems or scenario.problems()
    if problems:
        raise scenario_error(document, problems)
    return scenario


def _argument_problems(scenario: Scenario) -> list[Problem]:
    return [
        Problem(
            ("workload", "args", name),
            f"expected the field '{name}' of the scenario itself; it is passed to the program",
        )
        for name in scenario.workload.args
        if name in _RESERVED_ARGS
    ]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario file."""
    schema = Scenario.model_json_schema(by_alias=True)
    return {"$schema": SCHEMA_ID, **schema}


def shipped() -> tuple[Path, ...]:
    """Return the scenario files that come with rankdrill, by name."""
    return tuple(sorted(SHIPPED.glob("*.yaml")))
