"""The same training step with the same collectives and nothing around it: the yardstick for the stack's overhead.

One warm process; each line "N" on standard input makes it fork as many ranks as the world has, which train N steps and
end. Rank 0 answers with the steps' durations in seconds as JSON. Forked anew for each block, as the stack's members are
for each drill: a process' first hundred steps are slower than its later ones (its allocator still learns).
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist

from gpt_model import GPT, Corpus, warmup_then_cosine
from gpt_torchrun import Sharded


def train(rank: int, store: Path, options: argparse.Namespace, steps: int) -> list[float]:
    """Be one rank for some steps; return their durations in seconds."""
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=options.world)
    model, corpus = GPT(seed=options.seed), Corpus(seed=options.seed)
    optimizer = Sharded(model, rank, options.world)
    schedule = warmup_then_cosine(optimizer.inner, steps)
    durations_s: list[float] = []
    dist.barrier()
    for n in range(1, steps + 1):
        began_s = time.monotonic()
        _, inputs, targets = corpus.batch(n, rank, options.world, options.batch)
        loss = model.loss(inputs, targets)
        loss.backward()
        optimizer.step()
        schedule.step()
        loss.item()
        durations_s.append(time.monotonic() - began_s)
    dist.barrier()
    return durations_s


def run_block(options: argparse.Namespace, steps: int) -> None:
    """Fork a world, let it train, and wait for its end."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        for rank in range(options.world):
            pid = os.fork()
            if pid == 0:
                durations_s = train(rank, Path(folder) / "store", options, steps)
                if rank == 0:
                    print(json.dumps(durations_s), flush=True)
                os._exit(0)
            ranks.append(pid)
        for pid in ranks:
            os.waitpid(pid, 0)


def main() -> None:
    """Serve blocks of steps until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    # Warm, as a fork server is: what the optimizer imports, and a first backward.
    model = GPT(seed=options.seed)
    _, inputs, targets = Corpus(seed=options.seed).batch(1, 0, 1, options.batch)
    model.loss(inputs, targets).backward()
    torch.optim.AdamW(model.parameters())
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        run_block(options, int(line))


if __name__ == "__main__":
    main()
