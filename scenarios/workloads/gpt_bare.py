"""The same training step with the same collectives and nothing around it: the yardstick for the stack's overhead.

Four processes of this program are kept between drills; each line "N" on standard input asks for N steps, and rank 0
answers with their durations in seconds as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

import torch
import torch.distributed as dist

from gpt_model import GPT, Corpus, warmup_then_cosine
from gpt_torchrun import Sharded


def main() -> None:
    """Serve blocks of steps until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--world", type=int, required=True)
    parser.add_argument("--store", required=True, help="file through which the ranks find each other")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{options.store}", rank=options.rank, world_size=options.world)
    model, corpus = GPT(seed=options.seed), Corpus(seed=options.seed)
    optimizer = Sharded(model, options.rank, options.world)
    schedule = warmup_then_cosine(optimizer.inner, 1000)
    done = 0
    for line in sys.stdin:
        durations_s: list[float] = []
        dist.barrier()
        for _ in range(int(line)):
            began_s = time.monotonic()
            done += 1
            _, inputs, targets = corpus.batch(done, options.rank, options.world, options.batch)
            loss = model.loss(inputs, targets)
            loss.backward()
            optimizer.step()
            schedule.step()
            loss.item()
            durations_s.append(time.monotonic() - began_s)
        if options.rank == 0:
            print(json.dumps(durations_s), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
