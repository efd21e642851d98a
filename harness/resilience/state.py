"""What belongs to a snapshot: everything that decides how training goes on, of this rank.

A part is anything with `state_dict` and `load_state_dict`. Parameters that a `ShardedOptimizer` keeps are left out of
their module's part: they are gathered again from the shards' masters. Random streams of Python, NumPy and torch (CPU,
and CUDA where it is in use) belong to every state.
"""

from __future__ import annotations

import io
import pickle
import random
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import torch

from harness.errors import UsageError
from harness.resilience.memory import Region, SlotHeader, SnapshotError, checksum, payload_offset
from harness.resilience.shard import ShardedOptimizer


class Stateful(Protocol):
    """Anything whose state can be taken out and put back."""

    def state_dict(self) -> Any:
        """Return the state."""

    def load_state_dict(self, state: Any) -> Any:
        """Put a state back."""


class State:
    """The named parts of a rank's state."""

    def __init__(self, **parts: Any) -> None:
        for name, part in parts.items():
            if not (callable(getattr(part, "state_dict", None)) and callable(getattr(part, "load_state_dict", None))):
                raise UsageError(
                    f"State({name}=…) got a {type(part).__name__}, which has no state_dict() and load_state_dict(); "
                    "give it both, or leave it out if training does not depend on it"
                )
        self.parts: dict[str, Stateful] = dict(parts)
        self.shards = [part for part in parts.values() if isinstance(part, ShardedOptimizer)]

    def collect(self) -> dict[str, Any]:
        """Return the state as nested containers; tensors are live, not copied."""
        covered = {id(parameter) for shard in self.shards for parameter in shard.parameters}
        state: dict[str, Any] = {}
        for name, part in self.parts.items():
            state[name] = part.state_dict()
            if isinstance(part, torch.nn.Module):
                kept = {id(tensor): key for key, tensor in part.named_parameters(remove_duplicate=False)}
                left_out = {key for key_id, key in kept.items() if key_id in covered}
                state[name] = {key: value for key, value in state[name].items() if key not in left_out}
        state["__random__"] = random_streams()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what `collect` returned."""
        for name, part in self.parts.items():
            if isinstance(part, torch.nn.Module):
                part.load_state_dict(state[name], strict=False)
            else:
                part.load_state_dict(state[name])
        set_random_streams(state["__random__"])


def random_streams() -> dict[str, Any]:
    """States of every random generator that training may draw from."""
    streams: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        streams["cuda"] = torch.cuda.get_rng_state()
    return streams


def set_random_streams(streams: dict[str, Any]) -> None:
    """Put back what `random_streams` returned."""
    random.setstate(streams["python"])
    np.random.set_state(streams["numpy"])
    torch.set_rng_state(streams["torch"])
    if "cuda" in streams:
        torch.cuda.set_rng_state(streams["cuda"])


def seed_random_streams(seed: int, rank: int) -> None:
    """Give a rank streams of its own that depend on nothing but seed and rank."""
    stream = (seed * 1_000_003 + rank) % 2**32
    random.seed(stream)
    np.random.seed(stream)
    torch.manual_seed(stream)


class _TensorPickler(pickle.Pickler):
    """Pickles containers and leaves tensors out, numbered; their bytes are copied straight into the slot.

    `reducer_override` and not `persistent_id`, which would be called for each of a random stream's 625 numbers.
    """

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.tensors: list[torch.Tensor] = []

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return NotImplemented
        self.tensors.append(value.detach())
        return _tensor_out_of_slot, (str(value.dtype).removeprefix("torch."), tuple(value.shape))


def _tensor_out_of_slot(dtype_name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """Stands in a snapshot for a tensor; only `_TensorUnpickler`, which has the slot's bytes, can put one there."""
    raise SnapshotError(f"a snapshot's {dtype_name} tensor of shape {shape} was read without its slot")


class _TensorUnpickler(pickle.Unpickler):
    """Puts tensors, cloned out of the slot, back into their containers, in the order in which they were left out."""

    def __init__(self, file: io.BytesIO, payload: memoryview) -> None:
        super().__init__(file)
        self._payload = payload
        self._offset = 0

    def find_class(self, module: str, name: str) -> Any:
        if name == _tensor_out_of_slot.__name__ and module == __name__:
            return self._next_tensor
        return super().find_class(module, name)

    def _next_tensor(self, dtype_name: str, shape: tuple[int, ...]) -> torch.Tensor:
        tensor = torch.empty(shape, dtype=getattr(torch, dtype_name))
        size = tensor.numel() * tensor.element_size()
        if size:
            raw = torch.frombuffer(self._payload, dtype=torch.uint8, count=size, offset=self._offset)
            tensor.copy_(raw.view(tensor.dtype).view(shape))
        self._offset += aligned(size)
        return tensor


def aligned(size_bytes: int) -> int:
    """Tensors start on 64-byte boundaries of the payload."""
    return -(-size_bytes // 64) * 64


@dataclass(slots=True)
class Snapshots:
    """Writes and reads a rank's snapshots in its region."""

    region: Region

    def save(self, state: State, *, version: int, generation: int, rank: int) -> int:
        """Copy the state into a slot; the marker is set last. Returns its size in bytes.

        Raises SnapshotError if too big.
        """
        meta, tensors, payload_bytes = pickled(state)
        start = payload_offset(len(meta))
        if start + payload_bytes > self.region.capacity_bytes:
            raise SnapshotError(
                f"the state has grown to {start + payload_bytes} bytes, the slot has {self.region.capacity_bytes}; "
                "build everything that belongs to the state before session.train()"
            )
        index = self.region.slot_to_overwrite(version)
        data = self.region.begin(index)
        data[: len(meta)] = meta
        offset = start
        for tensor in tensors:
            size = tensor.numel() * tensor.element_size()
            if size:
                raw = torch.frombuffer(data, dtype=torch.uint8, count=size, offset=offset)
                raw.view(tensor.dtype).view(tensor.shape).copy_(tensor)
            offset += aligned(size)
        digest = checksum(meta, data[start : start + payload_bytes])
        self.region.commit(index, SlotHeader(version, generation, rank, len(meta), payload_bytes, digest))
        return start + payload_bytes

    def load(self, state: State, *, version: int, rank: int) -> None:
        """Verify and load one version. Raises SnapshotError when it is missing, another rank's, or damaged."""
        header, meta, payload = self.region.read(version)
        if header.rank != rank:
            raise SnapshotError(f"snapshot {version} belongs to rank {header.rank}, not to rank {rank}")
        content = _TensorUnpickler(io.BytesIO(bytes(meta)), payload).load()
        state.restore(cast(dict[str, Any], content))


def pickled(state: State) -> tuple[bytes, list[torch.Tensor], int]:
    """Return the containers' bytes, the tensors in order, and the bytes the tensors need."""
    file = io.BytesIO()
    pickler = _TensorPickler(file)
    pickler.dump(state.collect())
    size = sum(aligned(tensor.numel() * tensor.element_size()) for tensor in pickler.tensors)
    return file.getvalue(), pickler.tensors, size


def state_bytes(state: State) -> int:
    """Bytes a slot must have for this state, with room for containers that grow a little."""
    meta, _, payload_bytes = pickled(state)
    return payload_offset(2 * len(meta) + 4096) + payload_bytes
