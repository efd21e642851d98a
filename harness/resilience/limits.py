"""Time limits of the reference stack, in seconds, as presets.

`ci` suits machines where steps take a tenth of a second and nobody waits for a slow network; `production` is the
default.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """How long the stack waits before it acts. Every value is in seconds."""

    heartbeat_s: float
    node_lost_s: float
    start_s: float
    park_s: float
    form_s: float
    pause_s: float
    leave_s: float

    def __post_init__(self) -> None:
        """Refuse inverted timers: an inner limit that exceeds its outer one would act first and wrongly."""
        if self.heartbeat_s * 3 > self.node_lost_s:
            raise ValueError(
                f"heartbeat_s={self.heartbeat_s} must be at most a third of node_lost_s={self.node_lost_s}: "
                "one late heartbeat is not a lost node"
            )
        if self.form_s > self.pause_s:
            raise ValueError(f"form_s={self.form_s} must not exceed pause_s={self.pause_s}: the pause ends first")


PRESETS = {
    "ci": Limits(heartbeat_s=0.1, node_lost_s=0.5, start_s=60.0, park_s=10.0, form_s=5.0, pause_s=30.0, leave_s=5.0),
    "production": Limits(
        heartbeat_s=1.0, node_lost_s=5.0, start_s=900.0, park_s=60.0, form_s=60.0, pause_s=600.0, leave_s=30.0
    ),
}
