"""What this machine can do for a drill: one line a capability, each proven by using it. Never a traceback.

A capability that is missing says what it is for, so that a reader can tell whether the drill at hand needs it.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

# linux/pidfd.h: _IOWR(0xFF, 11, struct pidfd_info), whose first version is 64 bytes. Exit codes since Linux 6.15.
_PIDFD_INFO_BYTES = 64
_PIDFD_GET_INFO = (3 << 30) | (_PIDFD_INFO_BYTES << 16) | (0xFF << 8) | 11
_PIDFD_INFO_EXIT = 1 << 3
_EXIT_CODE_OFFSET = 60
_PROOF_CODE = 7
# Nothing is written there by its name; only its size and permission are looked at.
_SHM = Path("/dev/shm")  # noqa: S108
_PROBE_TIMEOUT_S = 10.0
_SHM_WANTED_BYTES = 256 << 20
_DISK_WANTED_BYTES = 256 << 20
_MEMORY_WANTED_BYTES = 3 << 30


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one capability. `required`: no drill runs without it."""

    name: str
    ok: bool
    required: bool
    detail: str
    needed_for: str


@dataclass(frozen=True, slots=True)
class Probe:
    """One examination. `look` returns whether the capability is there and what was seen; it may raise."""

    name: str
    required: bool
    needed_for: str
    look: Callable[[], tuple[bool, str]]


def examine(probes: Iterable[Probe]) -> tuple[Finding, ...]:
    """Run every probe. One that raises counts as missing, with its reason."""
    return tuple(_examine(probe) for probe in probes)


def _examine(probe: Probe) -> Finding:
    try:
        ok, detail = probe.look()
    except Exception as error:  # noqa: BLE001
        # Whatever goes wrong while looking is itself the finding; the other lines must still be printed.
        ok, detail = False, f"could not be examined: {type(error).__name__}: {error}"
    return Finding(probe.name, ok, probe.required, detail, probe.needed_for)


def machine_probes(state_dir: Path, runs_dir: Path) -> tuple[Probe, ...]:
    """Return the probes of this machine. `state_dir` holds the ledgers, `runs_dir` the reports."""
    return (
        Probe("linux", True, "processes, signals and /proc", _linux),
        Probe("python", True, "rankdrill itself (3.11 or newer)", _python),
        Probe("torch", True, "ranks of the reference stack and of torchrun", lambda: _package("torch")),
        Probe("numpy", True, "the reference stack", lambda: _package("numpy")),
        Probe("xxhash", True, "checksums of snapshots", lambda: _package("xxhash")),
        Probe("pidfd", True, "signals that can hit no other process", _pidfd),
        Probe("PIDFD_GET_INFO", False, "exit codes of ranks (else 'unknown')", _pidfd_info),
        Probe(str(_SHM), True, "snapshots in memory", lambda: _writable(_SHM, _SHM_WANTED_BYTES)),
        Probe("runs folder", True, "reports", lambda: _writable(_existing(runs_dir), _DISK_WANTED_BYTES)),
        Probe(
            "state folder",
            True,
            "the record of faults that must be undone",
            lambda: _writable(_existing(state_dir), 1 << 20),
        ),
        Probe("clean host", False, "any drill ('rankdrill heal' cleans up)", lambda: _clean(state_dir)),
        Probe("memory", False, "ranks (about half a GiB each)", _memory),
        Probe("processors", False, "drills on one machine (2 or more)", _processors),
        Probe("cgroup", False, "CPU and memory faults", _cgroup),
        Probe("root", False, "network faults on one machine", _root),
        Probe("network namespaces", False, "nodes with a network of their own", _namespaces),
        Probe("docker", False, "nodes in containers", _docker),
    )


def sufficient(findings: Iterable[Finding]) -> bool:
    """Return whether nothing required is missing."""
    return all(finding.ok or not finding.required for finding in findings)


def _linux() -> tuple[bool, str]:
    return sys.platform == "linux", f"{platform.system()} {platform.release()}"


def _python() -> tuple[bool, str]:
    return sys.version_info >= (3, 11), platform.python_version()


def _package(name: str) -> tuple[bool, str]:
    # Looked up, not imported: importing torch takes seconds.
    if importlib.util.find_spec(name) is None:
        return False, "not installed; pip install 'rankdrill[torch]'"
    return True, importlib.metadata.version(name)


def _pidfd() -> tuple[bool, str]:
    descriptor = os.pidfd_open(os.getpid())
    try:
        signal.pidfd_send_signal(descriptor, 0)
    finally:
        os.close(descriptor)
    return True, "opened and used"


def _pidfd_info() -> tuple[bool, str]:
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", f"raise SystemExit({_PROOF_CODE})"])
    descriptor = os.pidfd_open(child.pid)
    try:
        child.wait(_PROBE_TIMEOUT_S)
        asked = bytearray(struct.pack("Q", _PIDFD_INFO_EXIT).ljust(_PIDFD_INFO_BYTES, b"\0"))
        try:
            fcntl.ioctl(descriptor, _PIDFD_GET_INFO, asked)
        except OSError as error:
            return False, f"the kernel does not tell ({error.strerror}); Linux 6.15 or newer does"
        (answered,) = struct.unpack_from("Q", asked)
        (status,) = struct.unpack_from("i", asked, _EXIT_CODE_OFFSET)
    finally:
        child.kill()
        os.close(descriptor)
    if not answered & _PIDFD_INFO_EXIT or os.waitstatus_to_exitcode(status) != _PROOF_CODE:
        return False, "the kernel does not tell exit codes; Linux 6.15 or newer does"
    return True, "an exit code was read"


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest parent that exists: there it would be made."""
    folder = folder.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _writable(folder: Path, wanted_bytes: int) -> tuple[bool, str]:
    if not folder.is_dir():
        return False, f"{folder} is not a folder"
    if not os.access(folder, os.W_OK | os.X_OK):
        return False, f"{folder} is not writable"
    free_bytes = shutil.disk_usage(folder).free
    return free_bytes >= wanted_bytes, f"{folder}, {free_bytes >> 20} MiB free, {wanted_bytes >> 20} MiB wanted"


def _clean(state_dir: Path) -> tuple[bool, str]:
    ledgers = sorted(path.name for path in state_dir.glob("*.ledger"))
    if not ledgers:
        return True, "no ledger is open"
    # A drill that runs right now has one too, hence the careful words.
    return False, f"{len(ledgers)} open: {', '.join(ledgers[:3])}; a drill is running, or died here"


def _processors() -> tuple[bool, str]:
    count = len(os.sched_getaffinity(0))
    return count >= 2, f"{count} usable"


def _memory() -> tuple[bool, str]:
    import psutil

    memory = psutil.virtual_memory()
    return memory.available >= _MEMORY_WANTED_BYTES, (
        f"{memory.available / 2**30:.1f} of {memory.total / 2**30:.1f} GiB available, "
        f"{_MEMORY_WANTED_BYTES / 2**30:.1f} GiB wanted"
    )


def _cgroup() -> tuple[bool, str]:
    root = Path("/sys/fs/cgroup")
    if (root / "cgroup.controllers").exists():
        return os.access(root, os.W_OK), f"version 2, {'writable' if os.access(root, os.W_OK) else 'not writable'}"
    if (root / "cpu").is_dir():
        return os.access(
            root / "cpu", os.W_OK
        ), f"version 1, {'writable' if os.access(root / 'cpu', os.W_OK) else 'not writable'}"
    return False, f"none mounted at {root}"


def _root() -> tuple[bool, str]:
    return os.geteuid() == 0, f"user id {os.geteuid()}"


def _namespaces() -> tuple[bool, str]:
    tool = shutil.which("unshare")
    if tool is None:
        return False, "the command 'unshare' (util-linux) is not installed"
    done = subprocess.run(
        [tool, "--net", "true"], capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False
    )
    return done.returncode == 0, "one was made" if done.returncode == 0 else done.stderr.strip()[:200]


def _docker() -> tuple[bool, str]:
    address = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not address.startswith("unix://"):
        return False, f"DOCKER_HOST is {address}; only a unix socket is examined"
    path = address.removeprefix("unix://")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_PROBE_TIMEOUT_S)
        try:
            connection.connect(path)
            connection.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            answer = connection.recv(4096)
        except OSError as error:
            return False, f"no engine answers at {path} ({error.strerror or error})"
    return answer.startswith(b"HTTP/1.") and b" 200 " in answer.split(b"\r\n", 1)[0], f"an engine answers at {path}"
