"""The `gpt` training, broken on purpose in one way that shows only after a swap; `rankdrill selftest` must catch each.

--break nothing         sound: the yardstick of the others
--break skip-sample     the first step after a regroup leaves one sample out and does not say so in its loss
--break redo-step       the first step after a regroup updates the weights twice and reports one step
--break random-stream   after a regroup every rank draws dropout from a fresh random stream
--break restart-all     healthy members leave when they see a regroup, so that everybody is replaced
"""

from __future__ import annotations

import argparse
import os

import torch

from gpt_model import GPT, Corpus, warmup_then_cosine
from harness.probe import api as probe
from harness.resilience.session import Session, State, StepResult

WAYS = ("nothing", "skip-sample", "redo-step", "random-stream", "restart-all")


def main() -> None:
    """Train soundly until the first regroup."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--break", dest="way", choices=WAYS, required=True)
    options = parser.parse_args()

    session = Session.join()
    model, corpus = GPT(seed=options.seed), Corpus(seed=options.seed)
    optimizer = session.shard(torch.optim.AdamW, model, lr=1e-3)
    schedule = warmup_then_cosine(optimizer.inner, options.steps)
    state = State(model=model, optimizer=optimizer, schedule=schedule)
    seen = {"generation": 0}

    def step(n: int) -> StepResult:
        first_after_swap = session.generation > 1 and session.generation != seen["generation"]
        veteran = seen["generation"] == 1
        seen["generation"] = session.generation
        ids, inputs, targets = corpus.batch(n, session.rank, session.world, options.batch)
        if first_after_swap and options.way == "skip-sample" and session.rank == 0:
            ids, inputs, targets = ids[1:], inputs[1:], targets[1:]
        if first_after_swap and options.way == "random-stream":
            torch.manual_seed(n)
        if first_after_swap and options.way == "restart-all" and veteran and session.generation == 2:
            os._exit(1)
        loss = model.loss(inputs, targets)
        loss.backward()
        optimizer.step()
        if first_after_swap and options.way == "redo-step":
            model.loss(inputs, targets).backward()
            optimizer.step()
        schedule.step()
        return StepResult(loss=loss.item(), samples=ids)

    session.train(step, state, steps=options.steps, after_step=probe.step)
    probe.weights(model.state_dict(), step=options.steps, rank=session.rank)


if __name__ == "__main__":
    main()
