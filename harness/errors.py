"""Every error that rankdrill raises on purpose.

    RankdrillError                 exit code
    ├── UsageError                      4     the caller asked for something that cannot be meant
    │   ├── ScenarioError               4     a scenario file: names file, line, field, nearest word
    │   └── CapabilityError             4     this machine lacks what the drill needs; nothing was started
    ├── WorkloadError                   2     the user's training program failed by itself
    ├── HarnessError                    3     a fault of ours or of the machine
    │   ├── LaunchError                 3     a process, port or folder could not be set up
    │   ├── StoreError                  3     a result could not be written (disk full, no permission)
    │   └── DirtyHostError              3     something of a drill is left on this host
    └── Interrupted                     3     SIGINT or SIGTERM; what exists is still reported

A message names the cause and what to do next. Anything else that escapes is a bug in rankdrill.
"""

from __future__ import annotations


class RankdrillError(Exception):
    """Base of every error raised on purpose; `exit_code` is what the command line returns for it."""

    exit_code = 3


class UsageError(RankdrillError):
    """The request cannot be carried out as written; nothing was started."""

    exit_code = 4


class ScenarioError(UsageError):
    """A scenario file is wrong. The message names file, line, field and what was expected."""


class CapabilityError(UsageError):
    """This machine lacks something the drill needs; nothing was started."""


class WorkloadError(RankdrillError):
    """The training program failed by itself, before any fault could be blamed."""

    exit_code = 2


class HarnessError(RankdrillError):
    """Something of ours, or of the machine, failed; no verdict about the stack is possible."""


class LaunchError(HarnessError):
    """A process, port or folder that the drill needs could not be set up."""


class StoreError(HarnessError):
    """A result could not be written."""


class DirtyHostError(HarnessError):
    """Something of an earlier drill is left on this host and could not be removed."""


class Interrupted(RankdrillError):
    """SIGINT or SIGTERM arrived; everything was cleaned up and what exists is reported."""
