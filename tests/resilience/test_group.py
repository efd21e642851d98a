"""The rule of regrouping, with real gloo: a stopped peer that comes back must not touch what the survivors have restored."""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
from multiprocessing.connection import Connection
from typing import Any

import pytest

WAIT_S = 60
NUMBERS = 400_000


def rank_process(rank: int, orders: Connection) -> None:
    """One rank: does what it is told over a pipe; a control thread takes addresses and the order to park."""
    import threading

    import torch

    from harness.resilience.group import Group, Regroup, Rendezvous
    from harness.resilience.stethoscope import Stethoscope

    torch.set_num_threads(1)
    lock = threading.Lock()

    def say(*words: Any) -> None:
        with lock:
            orders.send(words)

    live = torch.full((2 * NUMBERS,), -1.0)
    box: dict[str, Any] = {}
    told = threading.Condition()
    work: list[tuple[Any, ...]] = []

    def control() -> None:
        while True:
            try:
                order = orders.recv()
            except EOFError:
                os._exit(0)
            if order[0] == "addresses":
                box["rendezvous"].fill(order[1])
            elif order[0] == "park":
                box["group"].abandon()
            else:
                with told:
                    work.append(order)
                    told.notify()

    threading.Thread(target=control, daemon=True).start()
    while True:
        with told:
            told.wait_for(lambda: bool(work))
            order = work.pop(0)
        try:
            if order[0] == "form":
                _, rank, generation = order
                box["rendezvous"] = Rendezvous(rank, lambda value: say("publish", value))
                box["group"] = Group(
                    rank=rank,
                    world=2,
                    generation=generation,
                    rendezvous=box["rendezvous"],
                    stethoscope=Stethoscope(),
                )
                box["group"].connect(WAIT_S)
                say("formed")
            elif order[0] == "gather":
                buffer = torch.empty(2 * NUMBERS)
                say("gathering")
                box["group"].all_gather(buffer, torch.full((NUMBERS,), float(order[1])))
                live.copy_(buffer)
                say("gathered", float(live.sum()))
            elif order[0] == "restore":
                live.fill_(float(order[1]))
                say("restored")
            elif order[0] == "check":
                say("checked", bool((live == float(order[1])).all()))
        except Regroup as error:
            box["group"].close()
            say("parked", str(error))


class Rank:
    """A rank process and its pipe."""

    def __init__(self, number: int) -> None:
        context = mp.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=rank_process, args=(number, theirs), daemon=True)
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
    ranks = [Rank(number) for number in range(3)]
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
