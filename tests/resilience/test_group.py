"""The rule of regrouping, with real gloo: a stopped peer that comes back touches nothing that was restored."""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
from typing import Any

import pytest

from tests.resilience.group_rank import NUMBERS, rank_process

WAIT_S = 60


class Rank:
    """A rank process and its pipe."""

    def __init__(self) -> None:
        context = mp.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=rank_process, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def tell(self, *order: Any) -> None:
        self.pipe.send(order)

    def hear(self, word: str) -> tuple[Any, ...]:
        assert self.pipe.poll(WAIT_S), f"never heard {word!r}"
        heard: tuple[Any, ...] = self.pipe.recv()
        assert heard[0] == word, heard
        return heard


def form(ranks: list[Rank], generation: int) -> None:
    for number, rank in enumerate(ranks):
        rank.tell("form", number, generation)
    values = {number: rank.hear("publish")[1] for number, rank in enumerate(ranks)}
    for rank in ranks:
        rank.tell("addresses", values)
    for rank in ranks:
        rank.hear("formed")


@pytest.fixture
def three() -> Any:
    ranks = [Rank() for _ in range(3)]
    yield ranks
    for rank in ranks:
        rank.process.kill()
        rank.process.join(WAIT_S)


@pytest.mark.live
def test_a_stopped_peer_that_comes_back_overwrites_nothing(three: list[Rank]) -> None:
    survivor, stopped, spare = three
    form([survivor, stopped], 1)
    assert stopped.process.pid is not None
    os.kill(stopped.process.pid, signal.SIGSTOP)
    stopped.tell("gather", 666)
    survivor.tell("gather", 1)
    survivor.hear("gathering")
    assert not survivor.pipe.poll(0.2), "it must wait for the stopped peer"

    survivor.tell("park")
    survivor.hear("parked")
    survivor.tell("restore", 5)
    survivor.hear("restored")
    form([survivor, spare], 2)

    os.kill(stopped.process.pid, signal.SIGCONT)
    stopped.hear("gathering")
    assert "broke" in stopped.hear("parked")[1]
    survivor.tell("check", 5)
    assert survivor.hear("checked") == ("checked", True)
    for rank, value in ((survivor, 1), (spare, 2)):
        rank.tell("gather", value)
    for rank in (survivor, spare):
        rank.hear("gathering")
        assert rank.hear("gathered")[1] == NUMBERS * 3.0


@pytest.mark.live
def test_a_killed_peer_frees_the_survivor_and_so_does_giving_up_while_connecting(three: list[Rank]) -> None:
    survivor, victim, spare = three
    form([survivor, victim], 1)
    survivor.tell("gather", 1)
    survivor.hear("gathering")
    victim.process.kill()
    survivor.hear("parked")

    survivor.tell("form", 0, 2)
    survivor.hear("publish")
    survivor.tell("park")
    assert "could not connect" in survivor.hear("parked")[1]
    form([survivor, spare], 3)
    for rank, value in ((survivor, 1), (spare, 2)):
        rank.tell("gather", value)
    for rank in (survivor, spare):
        rank.hear("gathering")
        assert rank.hear("gathered")[1] == NUMBERS * 3.0
