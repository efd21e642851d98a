"""Lines over TCP between controller and agents. A heartbeat is an empty line.

A plain asyncio protocol and no stream: many times a second something arrives here while lock-step ranks compute on the
same cores, and each wake-up delays them all.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

HEARTBEAT = b"\n"
NOBODY = -1
# More than this without a newline is no message of ours.
LONGEST_LINE_BYTES = 1 << 24


class LineLink(asyncio.Protocol):
    """One end. Callbacks get complete lines without their newline; a line that raises ValueError ends the link."""

    def __init__(
        self,
        on_line: Callable[[LineLink, bytes], None],
        on_lost: Callable[[LineLink, Exception | None], None],
        on_made: Callable[[LineLink], None] | None = None,
    ) -> None:
        self.node = NOBODY
        self._on_line = on_line
        self._on_lost = on_lost
        self._on_made = on_made
        self._rest = b""
        self._transport: asyncio.Transport
        self._broken: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._on_made is not None:
            self._on_made(self)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > LONGEST_LINE_BYTES:
            self._break(ValueError(f"a line of more than {LONGEST_LINE_BYTES} bytes"))
            return
        try:
            for line in lines:
                self._on_line(self, line)
        except ValueError as error:
            self._break(error)

    def _break(self, error: ValueError) -> None:
        self._broken = error
        self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Called by asyncio."""
        self._on_lost(self, self._broken or error)

    def send(self, line: bytes) -> None:
        """Send a line, newline included."""
        self._transport.write(line)

    def abort(self) -> None:
        """Drop the connection at once."""
        self._transport.abort()
