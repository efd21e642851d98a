"""Moves a snapshot from one agent's memory to another's: a line of JSON with sizes and checksum, then the bytes."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable

from harness.resilience.address import own_host
from harness.resilience.memory import Region, SlotHeader, SnapshotError, checksum

FETCH_S = 10.0


class SnapshotServer:
    """Serves this node's slots to other agents."""

    def __init__(self, region_of: Callable[[int], Region | None]) -> None:
        self._region_of = region_of
        self.address = ""

    async def start(self) -> str:
        """Listen on any port; return host:port."""
        server = await asyncio.start_server(self._serve, own_host(), 0)
        host, port = server.sockets[0].getsockname()[:2]
        self.address = f"{host}:{port}"
        return self.address

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = json.loads(await reader.readline())
            region = self._region_of(int(request["member"]))
            if region is None:
                writer.write(json.dumps({"error": "no such member here"}).encode() + b"\n")
            else:
                header, meta, payload = region.read(int(request["version"]))
                writer.write(json.dumps(dataclasses.asdict(header)).encode() + b"\n")
                writer.write(meta)
                writer.write(payload)
            await writer.drain()
        except (SnapshotError, ConnectionError, ValueError, KeyError, TypeError) as error:
            writer.write(json.dumps({"error": str(error)}).encode() + b"\n")
        finally:
            writer.close()


async def fetch(address: str, *, member: int, version: int) -> tuple[SlotHeader, bytes, bytes]:
    """Return header, meta and payload of a snapshot from another agent.

    Raises SnapshotError, OSError or TimeoutError.
    """
    host, _, port = address.rpartition(":")
    async with asyncio.timeout(FETCH_S):
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 24)
        try:
            writer.write(json.dumps({"member": member, "version": version}).encode() + b"\n")
            answer = json.loads(await reader.readline())
            if "error" in answer:
                raise SnapshotError(answer["error"])
            header = SlotHeader(**answer)
            meta = await reader.readexactly(header.meta_bytes)
            payload = await reader.readexactly(header.payload_bytes)
        finally:
            writer.close()
    if checksum(meta, memoryview(payload)) != header.checksum:
        raise SnapshotError(f"snapshot {version} was damaged on its way from {address}")
    return header, meta, payload
