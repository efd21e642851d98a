"""A sharded optimizer: each rank updates only its own part of the parameters, whose master copy nobody else has.

`step()` is reduce-scatter of the gradients, the inner optimizer on the own shard, all-gather of the parameters.
Collectives never run on live parameters or gradients, only on buffers that belong to the group of one generation: an
old generation's all-gather that completes late can then overwrite nothing that lives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from harness.resilience.group import Collectives


class ShardedOptimizer:
    """Wraps an optimizer class.

    `inner` is the torch optimizer over the own shard (give it to learning-rate schedules).
    """

    def __init__(
        self, make: Callable[..., torch.optim.Optimizer], model: torch.nn.Module, *, world: int, **options: Any
    ) -> None:
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._world = world
        total = sum(parameter.numel() for parameter in self.parameters)
        self.shard_size = -(-total // world)
        self._padded = self.shard_size * world
        # Parameters and gradients live in two flat tensors, so that one copy moves all of them to or from a group's
        # buffer.
        self._flat = torch.zeros(self._padded)
        self._flat_grad = torch.zeros(self._padded)
        self._adopt()
        self.master = torch.nn.Parameter(torch.zeros(self.shard_size))
        self.master.grad = torch.zeros(self.shard_size)
        self.inner = make([self.master], **options)
        self._group: Collectives | None = None

    def _adopt(self) -> None:
        offset = 0
        for parameter in self.parameters:
            end = offset + parameter.numel()
            self._flat[offset:end].copy_(parameter.detach().reshape(-1))
            parameter.data = self._flat[offset:end].view(parameter.shape)
            parameter.grad = self._flat_grad[offset:end].view(parameter.shape)
            offset = end

    def join(self, group: Collectives) -> None:
        """Use a group from now on; its buffers are its own."""
        self._group = group
        self._sent = torch.empty(self._padded)
        self._gathered = torch.empty(self._padded)
        self._received = torch.empty(self.shard_size)
        self._own = torch.empty(self.shard_size)

    def start_shard(self, rank: int) -> None:
        """Take the shard of `rank` out of the parameters as built, with a fresh optimizer state."""
        with torch.no_grad():
            self.master.copy_(self._flat[rank * self.shard_size : (rank + 1) * self.shard_size])

    @torch.no_grad()
    def step(self) -> None:
        """One optimizer update of the whole world."""
        group = self._joined()
        self._sent.copy_(self._flat_grad)
        group.reduce_scatter(self._received, self._sent)
        assert self.master.grad is not None
        torch.mul(self._received, 1.0 / self._world, out=self.master.grad)
        self.inner.step()
        self.gather()
        self._flat_grad.zero_()

    @torch.no_grad()
    def gather(self) -> None:
        """Rebuild all parameters from the masters of all shards."""
        group = self._joined()
        self._own.copy_(self.master)
        group.all_gather(self._gathered, self._own)
        self._flat.copy_(self._gathered)

    def zero_grad(self) -> None:
        """Forget gradients, for instance those of a step that was abandoned."""
        self._flat_grad.zero_()

    def flat_parameters(self) -> torch.Tensor:
        """All parameters, flat and padded, shape (world * shard_size,); live, not a copy."""
        return self._flat

    @torch.no_grad()
    def set_flat_parameters(self, flat: torch.Tensor) -> None:
        """Overwrite all parameters."""
        self._flat.copy_(flat)

    def _joined(self) -> Collectives:
        if self._group is None:
            raise RuntimeError("the optimizer has no group: step() may be called only inside session.train()")
        return self._group

    def state_dict(self) -> dict[str, Any]:
        """The own shard's master and optimizer state."""
        return {"master": self.master.detach(), "inner": self.inner.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put a shard back; parameters follow with `gather`."""
        with torch.no_grad():
            self.master.copy_(state["master"])
        self.inner.load_state_dict(state["inner"])
        self.zero_grad()
