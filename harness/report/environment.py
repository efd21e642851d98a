"""Reads the machine and the software that a report's figures belong to."""

from __future__ import annotations

import hashlib
import os
import platform
from importlib import metadata
from pathlib import Path

from harness.report.model import Environment


def collect() -> Environment:
    """Return the environment as it is now; call it when a drill begins, for the load average."""
    return Environment(
        rankdrill=_version("rankdrill") or "unknown",
        python=platform.python_version(),
        torch=_version("torch"),
        kernel=f"{platform.system()} {platform.release()}",
        cpu=_cpu(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=_memory_gib(),
        load_average=[round(load, 2) for load in os.getloadavg()],
        host=_host(),
    )


def _version(distribution: str) -> str | None:
    # Read from the package's metadata: importing torch takes seconds.
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _field(path: str, name: str) -> str | None:
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _cpu() -> str:
    return _field("/proc/cpuinfo", "model name") or platform.machine() or "unknown"


def _memory_gib() -> float | None:
    total = _field("/proc/meminfo", "MemTotal")
    return None if total is None else round(int(total.split()[0]) / (1 << 20), 1)


def _host() -> str:
    """Return 12 hex digits that are the same for every report of this host; its name stays here."""
    try:
        identity = Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        identity = ""
    return hashlib.sha256((identity or platform.node()).encode()).hexdigest()[:12]
