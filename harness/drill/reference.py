"""The unfaulted run that a faulted one must equal: made once, then found under a key of all that may change it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import platform
from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

from harness.drill.request import arguments_of, program_of
from harness.judge.plan import Reference
from harness.observe.observation import StepDone, WeightsDigest
from harness.observe.timeline import Timeline
from harness.scenario import Scenario
from harness.stacks.base import Stack

_FORMAT = 1
_MOST_SIBLINGS = 200


def cache_dir() -> Path:
    """Return the folder of cached reference runs: $XDG_CACHE_HOME/rankdrill/references, else the same in ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "rankdrill" / "references"


def key_of(scenario: Scenario, stack: Stack, seed: int) -> str:
    """Return a digest of everything that may change the result of an unfaulted run."""
    program = program_of(scenario, stack)
    parts: Mapping[str, object] = {
        "format": _FORMAT,
        "program": _digest(_beside(program), program.parent),
        "arguments": arguments_of(scenario, seed),
        "stack": [stack.name, *(_digest(_below(source), source) for source in stack.sources())],
        "world": scenario.workload.ranks,
        "torch": _torch_version(),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def read(key: str) -> Reference | None:
    """Return a cached reference run; None where there is none, or none that can be read."""
    try:
        data = json.loads((cache_dir() / f"{key}.json").read_bytes())
        return Reference(
            weights=str(data["weights"]),
            samples=tuple(tuple(int(sample) for sample in step) for step in data["samples"]),
            losses=tuple(float(loss) for loss in data["losses"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(key: str, reference: Reference) -> None:
    """Keep a reference run. A cache that cannot be written only costs the next drill time, so nothing is raised."""
    data = {"weights": reference.weights, "samples": reference.samples, "losses": reference.losses}
    with contextlib.suppress(OSError):
        folder = cache_dir()
        folder.mkdir(parents=True, exist_ok=True)
        _publish(folder, f"{key}.json", json.dumps(data).encode())


def _publish(folder: Path, name: str, content: bytes) -> None:
    """Let a file appear whole or not at all. Raises OSError."""
    # Nameless until it is complete, so that nothing is left behind when this process is killed on the way. Overwritten
    # is only what could not be read: else it would have been used.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(folder / name)
    try:
        fd = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            raise
        publish_by_name(folder, name, content)
        return
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        file.flush()
        # Python follows the link in /proc only where it is given a folder's descriptor; the path is absolute anyway.
        os.link(f"/proc/self/fd/{fd}", folder / name, src_dir_fd=fd, follow_symlinks=True)


def publish_by_name(folder: Path, name: str, content: bytes) -> None:
    """The same on file systems without nameless files; what an earlier writer left behind is written over."""
    unfinished = folder / f".{name}.unfinished"
    with unfinished.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate()
        file.write(content)
        file.flush()
        unfinished.rename(folder / name)


def reference_of(timeline: Timeline, world: int, steps: int) -> Reference | None:
    """Read a reference out of an unfaulted run; None when it is not complete or its ranks do not agree."""
    digests = {seen.rank: seen.digest for seen in timeline.of(WeightsDigest)}
    if len(digests) != world or len(dict.fromkeys(digests.values())) != 1:
        return None
    by_step: dict[int, dict[int, StepDone]] = defaultdict(dict)
    for seen in timeline.of(StepDone):
        by_step[seen.step][seen.rank] = seen
    if any(len(by_step[step]) != world for step in range(1, steps + 1)):
        return None
    order = [list(by_step[step].values()) for step in range(1, steps + 1)]
    losses = [[seen.loss for seen in done if seen.loss is not None] for done in order]
    return Reference(
        weights=digests[0],
        samples=tuple(tuple(sorted(sample for seen in done for sample in seen.samples)) for done in order),
        losses=tuple(sum(known) / world for known in losses) if all(len(known) == world for known in losses) else (),
    )


def _torch_version() -> str:
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "none"


def _beside(program: Path) -> Iterable[Path]:
    # A program may import its neighbours; more of them than that are not the program's own folder.
    siblings = sorted(program.parent.glob("*.py"))
    return siblings if len(siblings) <= _MOST_SIBLINGS else [program]


def _below(source: Path) -> Iterable[Path]:
    return sorted(source.rglob("*.py")) if source.is_dir() else [source]


def _digest(files: Iterable[Path], root: Path) -> str:
    digest = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root) if path != root else path.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()
