"""Which snapshot everybody loads after a regroup.

Why two versions per rank suffice (design: a swap is consistent): a step ends in a collective of the whole world, so
live ranks are at most one step apart, and each holds S(n-1) and S(n). The newest version that *every* rank holds
complete is loaded by all, survivors included; nothing that the whole world completed is lost.
"""

from __future__ import annotations

import numpy as np

from harness.resilience.control.events import Ints

NONE = -1
AS_BUILT = 0


def agreed_version(newest: Ints, previous: Ints) -> int | None:
    """Return the newest version that every rank holds, or None when there is no common one.

    A rank that holds no version at all has never entered a collective, so no other rank can have completed step 1:
    S(0), the state as built, is common to all. `newest` and `previous` have shape (world,).
    """
    if bool(np.any(newest == NONE)):
        untouched = bool(np.all((newest <= AS_BUILT) | (previous == AS_BUILT)))
        return AS_BUILT if untouched else None
    version = int(newest.min())
    held = (newest == version) | (previous == version)
    return version if bool(np.all(held)) else None
