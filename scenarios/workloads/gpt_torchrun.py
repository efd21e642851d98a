"""The same training under plain torchrun: a checkpoint every ten steps, everybody restarts from the newest.

What a careful user writes today: sharded optimizer, fixed flat buffers, checkpoint by rename. It exists to be compared
with.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from gpt_model import GPT, Corpus, warmup_then_cosine
from harness.probe import api as probe


class Sharded:
    """Reduce-scatter, own shard, all-gather: the same collectives as the reference stack's, without it."""

    def __init__(self, model: torch.nn.Module, rank: int, world: int) -> None:
        self.parameters = list(model.parameters())
        total = sum(parameter.numel() for parameter in self.parameters)
        self.size = -(-total // world)
        self.own = slice(rank * self.size, (rank + 1) * self.size)
        self.world = world
        self.flat, self.flat_grad = torch.zeros(self.size * world), torch.zeros(self.size * world)
        offset = 0
        for parameter in self.parameters:
            end = offset + parameter.numel()
            self.flat[offset:end].copy_(parameter.detach().reshape(-1))
            parameter.data = self.flat[offset:end].view(parameter.shape)
            parameter.grad = self.flat_grad[offset:end].view(parameter.shape)
            offset = end
        self.master = torch.nn.Parameter(self.flat[self.own].clone())
        self.master.grad = torch.zeros(self.size)
        self.inner = torch.optim.AdamW([self.master], lr=1e-3)

    @torch.no_grad()
    def step(self) -> None:
        """One update of the whole world."""
        assert self.master.grad is not None
        # What torch's reduce-scatter for gloo does too, but on a copy.
        dist.all_reduce(self.flat_grad)
        self.master.grad.copy_(self.flat_grad[self.own])
        self.master.grad.mul_(1.0 / self.world)
        self.inner.step()
        dist.all_gather_single(self.flat, self.master.detach())
        self.flat_grad.zero_()


def load_newest(folder: Path, rank: int, world: int, parts: dict[str, Any]) -> int:
    """Load the newest step of which every rank has a file; return it, 0 for none."""
    steps = [{int(path.stem.split("-")[1]) for path in folder.glob(f"{other}-*.pt")} for other in range(world)]
    common = set.intersection(*steps)
    if not common:
        return 0
    step = max(common)
    saved = torch.load(folder / f"{rank}-{step}.pt", weights_only=False)
    for name, part in parts.items():
        part.load_state_dict(saved[name])
    torch.set_rng_state(saved["random"])
    return step


def main() -> None:
    """Train for as many steps as asked, from the newest checkpoint on."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    generation = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) + 1
    probe.joined("member")
    probe.held(rank, world, generation)
    model, corpus = GPT(seed=options.seed), Corpus(seed=options.seed)
    optimizer = Sharded(model, rank, world)
    schedule = warmup_then_cosine(optimizer.inner, options.steps)
    folder = Path(os.environ.get("RANKDRILL_PROBE_DIR", tempfile.gettempdir())).parent / "checkpoints"
    folder.mkdir(exist_ok=True)
    torch.manual_seed((options.seed * 1_000_003 + rank) % 2**32)
    done = load_newest(folder, rank, world, {"model": model, "inner": optimizer.inner, "schedule": schedule})
    with torch.no_grad():
        optimizer.master.copy_(optimizer.flat[optimizer.own])
    probe.loaded(done, rank=rank, generation=generation)
    for n in range(done + 1, options.steps + 1):
        started_ns = time.monotonic_ns()
        ids, inputs, targets = corpus.batch(n, rank, world, options.batch)
        loss = model.loss(inputs, targets)
        loss.backward()
        optimizer.step()
        schedule.step()
        if n % options.every == 0:
            content = {
                "model": model.state_dict(),
                "inner": optimizer.inner.state_dict(),
                "schedule": schedule.state_dict(),
                "random": torch.get_rng_state(),
            }
            torch.save(content, folder / f"{rank}-{n}.tmp")
            (folder / f"{rank}-{n}.tmp").rename(folder / f"{rank}-{n}.pt")
        probe.step(
            n,
            rank=rank,
            world=world,
            generation=generation,
            samples=ids,
            loss=loss.item(),
            started_ns=started_ns,
        )
    probe.finished(options.steps, rank=rank)
    probe.weights(model.state_dict(), step=options.steps, rank=rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
