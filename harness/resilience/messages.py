"""Messages between agent and members: JSON, one a packet, over a Unix sequenced-packet socket.

Packets keep their borders, so the training thread and the control thread may both send without a lock.
"""

from __future__ import annotations

import base64
import json
import os
import socket
from typing import Any

PACKET_BYTES = 1 << 20
AGENT_VARIABLE = "RANKDRILL_AGENT"
WORLD_VARIABLE = "RANKDRILL_WORLD"
CONNECT_VARIABLE = "RANKDRILL_CONNECT_S"

Message = dict[str, Any]


def agent_address(token: str) -> str:
    """An abstract Unix address: it leaves no file behind, and other network namespaces cannot see it."""
    return f"\0rankdrill-{token}"


def listen(token: str) -> socket.socket:
    """The agent's end; members connect to it."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
    server.bind(agent_address(token))
    server.listen(128)
    return server


def connect() -> socket.socket:
    """A member's end, from the environment its agent gave it."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link.connect(agent_address(os.environ[AGENT_VARIABLE]))
    return link


def encode(message: Message) -> bytes:
    """One packet."""
    return json.dumps(message, separators=(",", ":")).encode()


def receive(link: socket.socket) -> tuple[Message, list[int]] | None:
    """Wait for one packet; return it with the descriptors that came along, or None when the other end is gone."""
    try:
        data, descriptors, _, _ = socket.recv_fds(link, PACKET_BYTES, 4)
    except ConnectionResetError:
        return None
    if not data:
        return None
    return json.loads(data), list(descriptors)


def to_text(value: bytes) -> str:
    """Bytes as JSON text."""
    return base64.b64encode(value).decode()


def from_text(value: str) -> bytes:
    """The bytes that `to_text` wrote."""
    return base64.b64decode(value)
