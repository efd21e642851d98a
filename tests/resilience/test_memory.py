"""Snapshot slots: a reader never sees half a version, and damage is noticed before it is loaded."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.resilience.memory import Region, SlotHeader, SnapshotError, checksum


def region() -> Region:
    return Region.create("test", 4096)


def header(version: int, meta: bytes, payload: bytes, rank: int = 0) -> SlotHeader:
    return SlotHeader(version, 1, rank, len(meta), len(payload), checksum(meta, memoryview(payload)))


def put(slots: Region, version: int) -> None:
    meta, payload = f"meta {version}".encode(), bytes([version % 256]) * 100
    slots.write(header(version, meta, payload), meta, payload)


def test_the_last_two_versions_are_kept() -> None:
    slots = region()
    assert slots.versions() == (-1, -1)
    for version in range(5):
        put(slots, version)
    assert slots.versions() == (4, 3)
    read, meta, payload = slots.read(3)
    assert (read.version, bytes(meta), bytes(payload)) == (3, b"meta 3", b"\x03" * 100)


def test_going_back_overwrites_the_version_from_the_future_first() -> None:
    slots = region()
    put(slots, 20)
    put(slots, 21)
    put(slots, 21)
    assert slots.versions() == (21, 20)


def test_a_writer_killed_between_begin_and_commit_leaves_the_other_version() -> None:
    slots = region()
    put(slots, 7)
    put(slots, 8)
    slots.begin(slots.slot_to_overwrite(9))[:4] = b"torn"
    assert slots.versions() == (8, -1)
    assert bytes(slots.read(8)[1]) == b"meta 8"


def test_another_mapping_of_the_same_memory_sees_the_same_versions() -> None:
    slots = region()
    put(slots, 3)
    other = Region.attach(os.dup(slots.fd))
    assert other.capacity_bytes == slots.capacity_bytes
    assert other.versions() == (3, -1)


@given(st.integers(min_value=0, max_value=99), st.integers(min_value=0, max_value=7))
def test_every_flipped_bit_is_noticed(place: int, bit: int) -> None:
    slots = region()
    put(slots, 1)
    _, _, payload = slots.read(1)
    payload[place] ^= 1 << bit
    with pytest.raises(SnapshotError, match="checksum"):
        slots.read(1)


def test_a_version_that_is_not_there_is_named_with_those_that_are() -> None:
    slots = region()
    put(slots, 1)
    with pytest.raises(SnapshotError, match=r"snapshot 5 is not held here \(held: \(1, -1\)\)"):
        slots.read(5)


def test_a_snapshot_larger_than_its_slot_is_refused_before_anything_is_overwritten() -> None:
    slots = region()
    put(slots, 1)
    big = bytes(5000)
    with pytest.raises(SnapshotError, match="needs"):
        slots.write(header(2, b"", big), b"", big)
    assert slots.versions() == (1, -1)
