"""A small GPT on the Python standard library's own sources, data-parallel with a sharded optimizer.

It is what a user would write against `harness.resilience.session`, and the model for the README.
"""

from __future__ import annotations

import argparse

import torch

from gpt_model import GPT, Corpus, warmup_then_cosine
from harness.probe import api as probe
from harness.resilience.session import Session, State, StepResult


def main() -> None:
    """Train for as many steps as asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=2, help="sequences per rank and step")
    options = parser.parse_args()

    session = Session.join()
    model, corpus = GPT(seed=options.seed), Corpus(seed=options.seed)
    optimizer = session.shard(torch.optim.AdamW, model, lr=1e-3)
    schedule = warmup_then_cosine(optimizer.inner, options.steps)
    state = State(model=model, optimizer=optimizer, schedule=schedule)

    def step(n: int) -> StepResult:
        with session.phase("data"):
            ids, inputs, targets = corpus.batch(n, session.rank, session.world, options.batch)
        loss = model.loss(inputs, targets)
        loss.backward()
        optimizer.step()
        schedule.step()
        return StepResult(loss=loss.item(), samples=ids)

    session.train(step, state, steps=options.steps, after_step=probe.step)
    probe.weights(model.state_dict(), step=options.steps, rank=session.rank)


if __name__ == "__main__":
    main()
