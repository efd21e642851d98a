"""What an injector needs of the node where its target lives. A Protocol: injectors never touch a machine otherwise."""

from __future__ import annotations

from typing import Protocol

from chaos.target import RosterMember


class Host(Protocol):
    """One node. Every call names a process by pid and start time; none is mistaken for its successor."""

    @property
    def node(self) -> str:
        """Name of the node."""
        ...

    def thread_states(self, member: RosterMember) -> str:
        """Return the state letters of all its threads ("T" stopped, "S", "R", "D", …); "" if it is gone."""
        ...

    def descendants(self, member: RosterMember) -> tuple[RosterMember, ...]:
        """Return its living descendants, parents before children."""
        ...

    def send(self, member: RosterMember, signal_name: str) -> bool:
        """Send a signal ("KILL", "STOP", …); False if it is gone. Raises InjectError where that is not permitted."""
        ...
