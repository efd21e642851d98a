"""The address other nodes reach this one at."""

from __future__ import annotations

import os

HOST_VARIABLE = "RANKDRILL_HOST"


def own_host() -> str:
    """`RANKDRILL_HOST` where the launcher gives one; loopback on a machine by itself."""
    return os.environ.get(HOST_VARIABLE, "127.0.0.1")
