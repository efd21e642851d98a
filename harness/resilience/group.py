"""One generation's process group: built through the controller, abandoned by the rule, never trusted to free itself.

The rule (measured with torch 2.13 and gloo, where `abort` and `shutdown` unblock nothing): shut down the old group's
*connected* sockets, which frees every waiter within milliseconds; let every old work complete, with an error. A new
generation has buffers of its own, so that even a work that never completes can overwrite nothing that lives: merely
abandoning a group would let a collective that a stopped peer finishes later overwrite restored parameters.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Protocol

import torch
import torch.distributed as dist

from harness.resilience.address import own_host
from harness.resilience.stethoscope import Stethoscope

# How long a collective may take is decided by detection, not by the transport. This is torch's own default; what a
# collective that was left behind holds is freed by then.
LONG_TIMEOUT = timedelta(minutes=30)
# Once its connections are shut down, a work completes within milliseconds, or (rarely) never.
COMPLETION_GRACE_S = 0.25
LOOK_AGAIN = timedelta(seconds=0.1)


class Regroup(BaseException):
    """The generation is over; training code must unwind to `Session.train`, which goes on in the next one.

    A BaseException, as asyncio's cancellation is, so that a broad `except Exception` in a step cannot swallow it.
    """


class Collectives(Protocol):
    """What training needs of a group. Tensors are contiguous and of one dtype.

    What `reduce_scatter` and `all_gather` are given must belong to this generation alone and be dropped with it: a
    work that never completes is left behind, and may still write. `all_reduce` takes any tensor.
    """

    def reduce_scatter(self, output: torch.Tensor, source: torch.Tensor) -> None:
        """Sum `source` (world * n,) over ranks; leave part `rank` in `output` (n,). `source` is spoilt by it."""

    def all_gather(self, output: torch.Tensor, source: torch.Tensor) -> None:
        """Leave every rank's `source` (n,) in `output` (world * n,)."""

    def all_reduce(self, tensor: torch.Tensor) -> None:
        """Sum over ranks, in place."""


# torch ships no types for these names.
class Rendezvous(dist.Store):  # type: ignore[name-defined,misc]
    """The store through which gloo learns its peers' addresses, fed by the controller; it outlives every rank.

    gloo publishes one value a rank and reads everybody's. Values of one generation only: a late member of an older one
    has no way in.
    """

    def __init__(self, rank: int, publish: Callable[[bytes], None]) -> None:
        super().__init__()
        self._rank = rank
        self._publish = publish
        self._values: dict[str, bytes] = {}
        self._changed = threading.Condition()
        self._abandoned = False
        self.own_value = b""

    def fill(self, values: dict[int, bytes]) -> None:
        """All ranks' values have arrived (called by the control thread)."""
        with self._changed:
            self._values = {str(rank): value for rank, value in values.items()}
            self._changed.notify_all()

    def abandon(self) -> None:
        """Free whoever waits for a value; it gets an error."""
        with self._changed:
            self._abandoned = True
            self._changed.notify_all()

    def peer_values(self) -> list[bytes]:
        """What the other ranks published."""
        return [value for rank, value in self._values.items() if rank != str(self._rank)]

    # What torch calls. Keys end in the rank.

    def set(self, key: str, value: bytes | str) -> None:
        """Publish this rank's value."""
        self.own_value = value.encode() if isinstance(value, str) else bytes(value)
        self._publish(self.own_value)

    def get(self, key: str) -> bytes:
        """Wait for a rank's value."""
        rank = key.rpartition("/")[2]
        with self._changed:
            while rank not in self._values:
                if self._abandoned:
                    raise RuntimeError("the generation was given up while its group was being built")
                self._changed.wait()
            return self._values[rank]

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait for several values."""
        for key in keys:
            self.get(key)

    def check(self, keys: list[str]) -> bool:
        """Are all these values there?"""
        return all(key.rpartition("/")[2] in self._values for key in keys)


class Group:
    """A gloo group of one generation.

    Methods belong to the training thread, except `abandon`, which any thread may call.
    """

    def __init__(
        self, *, rank: int, world: int, generation: int, rendezvous: Rendezvous, stethoscope: Stethoscope
    ) -> None:
        self.rank = rank
        self.world = world
        self.generation = generation
        self.collectives_done = 0
        self._rendezvous = rendezvous
        self._stethoscope = stethoscope
        self._abandoned = threading.Event()
        self._abandoned_s = 0.0
        self._pg: Any = None

    def connect(self, timeout_s: float) -> None:
        """Build the group. Raises Regroup when the generation is given up, or a peer does not come, meanwhile."""
        # The only way to give a group its own device; torch ships no types for it.
        options = dist.ProcessGroupGloo._Options()  # type: ignore[attr-defined]
        options._timeout = timedelta(seconds=timeout_s)
        options._devices = [dist.ProcessGroupGloo.create_device(hostname=own_host())]
        try:
            self.use(dist.ProcessGroupGloo(self._rendezvous, self.rank, self.world, options))
        except RuntimeError as error:
            raise Regroup(f"generation {self.generation} could not connect: {error}") from error
        if self._abandoned.is_set():
            shut_down(owned_sockets(self._rendezvous))
            raise Regroup(f"generation {self.generation} was given up while it connected")
        self._pg._set_default_timeout(LONG_TIMEOUT)

    def use(self, process_group: Any) -> None:
        """Run collectives on this process group."""
        self._pg = process_group

    def reduce_scatter(self, output: torch.Tensor, source: torch.Tensor) -> None:
        """See Collectives."""
        # Torch's reduce-scatter for gloo all-reduces a copy and takes a slice of it, and its work neither honours a
        # limit on waiting nor tells that it is complete (measured). This is the same without the copy.
        self._run("reduce_scatter", lambda: self._pg.allreduce([source]))
        part = output.numel()
        output.copy_(source[self.rank * part : (self.rank + 1) * part])

    def all_gather(self, output: torch.Tensor, source: torch.Tensor) -> None:
        """See Collectives."""
        self._run("all_gather", lambda: self._pg._allgather_base(output, source))

    def all_reduce(self, tensor: torch.Tensor) -> None:
        """See Collectives."""
        own = tensor.clone()
        self._run("all_reduce", lambda: self._pg.allreduce([own]))
        tensor.copy_(own)

    def barrier(self) -> None:
        """Wait until every rank is here. Not counted as one of the step's own collectives."""
        self.all_reduce(torch.zeros(1))

    def _run(self, name: str, start: Callable[[], Any]) -> None:
        if self._abandoned.is_set():
            raise Regroup(f"generation {self.generation} was given up")
        began_ns = time.monotonic_ns()
        self._stethoscope.enter_collective()
        try:
            self._finish(start())
        except RuntimeError as error:
            self.abandon()
            raise Regroup(f"{name} of generation {self.generation} broke: {error}") from error
        finally:
            self._stethoscope.leave_collective(time.monotonic_ns() - began_ns)
        self.collectives_done += 1

    def _finish(self, work: Any) -> None:
        """Return when a work is complete, and raise RuntimeError when it is broken.

        A collective that starts on a connection which a peer has just closed may wait for data for ever, with no socket
        left to shut down (seen once in about 200 regroups). It is left behind: all it can still write to are buffers of
        its own generation.
        """
        while True:
            try:
                work.wait(LOOK_AGAIN)
            except RuntimeError:
                if work.is_completed():
                    raise
            else:
                return
            if self._abandoned.is_set() and time.monotonic() - self._abandoned_s > COMPLETION_GRACE_S:
                self._leave_behind(work)
                raise RuntimeError("it did not complete after its connections were shut down, and is left behind")

    def _leave_behind(self, work: Any) -> None:
        sys.stderr.write(f"rank {self.rank} leaves a collective of generation {self.generation} behind\n")
        # Their destructors would wait for the work; never to be destroyed, they end with the process.
        for leftover in (work, self._pg):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(leftover))

    def abandon(self) -> None:
        """Give the generation up: free a training thread that is stuck in it, and the peers that wait for us."""
        if not self._abandoned.is_set():
            self._abandoned_s = time.monotonic()
        self._abandoned.set()
        self._rendezvous.abandon()
        shut_down(owned_sockets(self._rendezvous))

    def close(self) -> None:
        """Drop the group after its last work. Training thread only."""
        self.abandon()
        self._pg = None


class Rehearsal:
    """A world of one that costs nothing: warms up a spare's step without peers.

    Results are thrown away by the caller.
    """

    def __init__(self, world: int) -> None:
        self.world = world

    def reduce_scatter(self, output: torch.Tensor, source: torch.Tensor) -> None:
        """As if every rank had sent the same."""
        output.copy_(source[: output.numel()])

    def all_gather(self, output: torch.Tensor, source: torch.Tensor) -> None:
        """Only the own part changes."""
        output[: source.numel()].copy_(source)

    def all_reduce(self, tensor: torch.Tensor) -> None:
        """Nothing to add."""


def owned_sockets(rendezvous: Rendezvous) -> list[socket.socket]:
    """Duplicates of this process' connected sockets whose peer (or own) address this group published.

    Never a listening one: shutting that down terminates the process. Never another thread's: their addresses were not
    published.
    """
    own, peers = rendezvous.own_value, rendezvous.peer_values()
    found: list[socket.socket] = []
    for name in os.listdir("/proc/self/fd"):
        duplicate = _duplicate(int(name))
        if duplicate is None:
            continue
        if _belongs(duplicate, own, peers):
            found.append(duplicate)
        else:
            duplicate.close()
    return found


def _duplicate(fd: int) -> socket.socket | None:
    """A second descriptor of a socket; None for what is no socket or has just been closed."""
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            return None
        second = os.dup(fd)
    except OSError:
        return None
    try:
        return socket.socket(fileno=second)
    except OSError:
        os.close(second)
        return None


def _belongs(connection: socket.socket, own: bytes, peers: list[bytes]) -> bool:
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    try:
        here, there = packed(connection.getsockname()), packed(connection.getpeername())
    except OSError:
        return False
    return here in own or any(there in value for value in peers)


def packed(address: tuple[Any, ...]) -> bytes:
    """A socket address as the kernel's structure begins in memory, which is how gloo publishes it."""
    if len(address) == 2:
        return (
            struct.pack("=H", socket.AF_INET)
            + struct.pack("!H", address[1])
            + socket.inet_pton(socket.AF_INET, address[0])
        )
    return (
        struct.pack("=H", socket.AF_INET6)
        + struct.pack("!HI", address[1], address[2])
        + socket.inet_pton(socket.AF_INET6, address[0])
    )


def shut_down(connections: list[socket.socket]) -> None:
    """Shut connections down for both directions and close our duplicates."""
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()
