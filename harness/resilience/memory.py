"""Snapshot slots: two versions of one rank's state in memory that its agent owns, so that it outlives the rank.

A region is an anonymous memory file (memfd): it has no name to leave behind, and it is gone when agent and member are.
Layout: one header page of 8-byte words, then two slots of equal capacity. A slot's marker (version + 1, 0 =
incomplete) is cleared before and stored after everything else, so that a rank killed at any moment leaves at least one
complete version.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass

import xxhash

from harness.errors import HarnessError

HEADER_BYTES = 4096
SLOTS = 2
WORDS_PER_SLOT = 8
MARKER, GENERATION, RANK, META_BYTES, PAYLOAD_BYTES, CHECKSUM = range(6)
NO_VERSION = -1


class SnapshotError(HarnessError):
    """A snapshot is missing, torn or does not match its checksum."""


@dataclass(frozen=True, slots=True)
class SlotHeader:
    """What a slot contains; sizes in bytes, the checksum is XXH3-64 over meta and payload."""

    version: int
    generation: int
    rank: int
    meta_bytes: int
    payload_bytes: int
    checksum: int


class Region:
    """Two slots over one memory file. Writer (the rank) and reader (its agent) each map it themselves."""

    def __init__(self, fd: int, capacity_bytes: int) -> None:
        self.fd = fd
        self.capacity_bytes = capacity_bytes
        # MAP_POPULATE: every page is mapped now, so that no snapshot pays for first touches.
        self._map = mmap.mmap(fd, HEADER_BYTES + SLOTS * capacity_bytes, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        self._view = memoryview(self._map)
        self._words = self._view[:HEADER_BYTES].cast("Q")

    @classmethod
    def create(cls, name: str, capacity_bytes: int) -> Region:
        """Make a region; its memory is reserved now, so that a full machine fails here and not in training."""
        capacity_bytes = -(-capacity_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        fd = os.memfd_create(name, os.MFD_CLOEXEC)
        os.posix_fallocate(fd, 0, HEADER_BYTES + SLOTS * capacity_bytes)
        return cls(fd, capacity_bytes)

    @classmethod
    def attach(cls, fd: int) -> Region:
        """Map a region that another process made; takes over the descriptor."""
        return cls(fd, (os.fstat(fd).st_size - HEADER_BYTES) // SLOTS)

    def slot(self, index: int) -> memoryview:
        """The bytes of a slot, shape (capacity_bytes,)."""
        start = HEADER_BYTES + index * self.capacity_bytes
        return self._view[start : start + self.capacity_bytes]

    def header(self, index: int) -> SlotHeader | None:
        """What a slot contains, or None while it is incomplete."""
        words = self._words[8 + index * WORDS_PER_SLOT : 8 + (index + 1) * WORDS_PER_SLOT]
        if words[MARKER] == 0:
            return None
        return SlotHeader(
            words[MARKER] - 1, words[GENERATION], words[RANK], words[META_BYTES], words[PAYLOAD_BYTES], words[CHECKSUM]
        )

    def versions(self) -> tuple[int, int]:
        """Newest and previous complete version, -1 for none."""
        held = [header.version for index in range(SLOTS) if (header := self.header(index)) is not None]
        held.sort(reverse=True)
        held += [NO_VERSION] * (SLOTS - len(held))
        return held[0], held[1]

    def slot_to_overwrite(self, version: int) -> int:
        """The slot that version may be written to: the same version's, an incomplete one, else the older one.

        Versions newer than `version` are from a future that the regroup has given up; they go first.
        """
        headers = [self.header(index) for index in range(SLOTS)]
        for index, header in enumerate(headers):
            if header is None or header.version >= version:
                return index
        held = [header.version for header in headers if header is not None]
        return held.index(min(held))

    def begin(self, index: int) -> memoryview:
        """Mark a slot incomplete and return its bytes."""
        self._words[8 + index * WORDS_PER_SLOT + MARKER] = 0
        return self.slot(index)

    def commit(self, index: int, header: SlotHeader) -> None:
        """Store the header of a slot whose bytes are written; the marker last."""
        base = 8 + index * WORDS_PER_SLOT
        self._words[base + GENERATION] = header.generation
        self._words[base + RANK] = header.rank
        self._words[base + META_BYTES] = header.meta_bytes
        self._words[base + PAYLOAD_BYTES] = header.payload_bytes
        self._words[base + CHECKSUM] = header.checksum
        self._words[base + MARKER] = header.version + 1

    def read(self, version: int) -> tuple[SlotHeader, memoryview, memoryview]:
        """Return header, meta and payload of a complete version after checking its checksum; else SnapshotError."""
        for index in range(SLOTS):
            header = self.header(index)
            if header is None or header.version != version:
                continue
            data = self.slot(index)
            meta = data[: header.meta_bytes]
            payload = data[payload_offset(header.meta_bytes) :][: header.payload_bytes]
            if checksum(meta, payload) != header.checksum:
                raise SnapshotError(
                    f"snapshot {version} of rank {header.rank} does not match its checksum; it is not used"
                )
            return header, meta, payload
        raise SnapshotError(f"snapshot {version} is not held here (held: {self.versions()})")

    def write(self, header: SlotHeader, meta: bytes | memoryview, payload: bytes | memoryview) -> None:
        """Store a complete version that came from elsewhere."""
        need = payload_offset(header.meta_bytes) + header.payload_bytes
        if need > self.capacity_bytes:
            raise SnapshotError(f"snapshot {header.version} needs {need} bytes, the slot has {self.capacity_bytes}")
        index = self.slot_to_overwrite(header.version)
        data = self.begin(index)
        data[: header.meta_bytes] = meta
        start = payload_offset(header.meta_bytes)
        data[start : start + header.payload_bytes] = payload
        self.commit(index, header)

    def close(self) -> None:
        """Close the descriptor. The memory goes when nothing maps it any more."""
        os.close(self.fd)


def payload_offset(meta_bytes: int) -> int:
    """Payload starts on a 64-byte boundary, so that typed views into it are aligned."""
    return -(-meta_bytes // 64) * 64


def checksum(meta: bytes | memoryview, payload: memoryview) -> int:
    """XXH3-64 over meta and payload."""
    digest = xxhash.xxh3_64(meta)
    digest.update(payload)
    return digest.intdigest()
