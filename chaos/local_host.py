"""A node whose processes are processes of this machine: pidfds and /proc, standard library only."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from chaos import processes
from chaos.errors import InjectError
from chaos.target import RosterMember


@dataclass(frozen=True, slots=True)
class LocalHost:
    """A `Host` on this machine; several may share the machine under different names."""

    node: str

    def thread_states(self, member: RosterMember) -> str:
        """Return the state letters of all its threads; "" if it is gone."""
        return processes.thread_states(member.pid, member.started_ticks)

    def descendants(self, member: RosterMember) -> tuple[RosterMember, ...]:
        """Return its living descendants, parents before children; none if it is gone."""
        if not processes.alive(member.pid, member.started_ticks):
            return ()
        return tuple(RosterMember(member.node, pid, ticks, None) for pid, ticks in processes.descendants(member.pid))

    def send(self, member: RosterMember, signal_name: str) -> bool:
        """Send a signal through a pidfd; False if it is gone. Raises InjectError where that is not permitted."""
        try:
            return processes.send(member.pid, member.started_ticks, signal.Signals[f"SIG{signal_name}"])
        except PermissionError as error:
            raise InjectError(
                f"SIG{signal_name} to process {member.pid} on {member.node} is not permitted ({error}): "
                "run the drill as the user that owns the processes, or as root"
            ) from error
