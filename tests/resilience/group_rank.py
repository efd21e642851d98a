"""A rank that does what it is told over a pipe, with a real group: the other end of tests/resilience/test_group.py."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch

from harness.resilience.group import Group, Regroup, Rendezvous
from harness.resilience.stethoscope import Stethoscope

NUMBERS = 400_000
CONNECT_S = 60


class RankProcess:
    """The main thread obeys orders one by one; a control thread takes addresses and the order to park."""

    def __init__(self, pipe: Connection) -> None:
        torch.set_num_threads(1)
        self._pipe = pipe
        self._saying = threading.Lock()
        self._told = threading.Condition()
        self._orders: list[tuple[Any, ...]] = []
        self._rendezvous: Rendezvous
        self._group: Group
        self._live = torch.full((2 * NUMBERS,), -1.0)

    def run(self) -> None:
        """Obey until the pipe closes."""
        threading.Thread(target=self._control, daemon=True).start()
        actions: dict[str, Callable[..., None]] = {
            "form": self._form,
            "gather": self._gather,
            "restore": self._restore,
            "check": self._check,
        }
        while True:
            with self._told:
                self._told.wait_for(lambda: bool(self._orders))
                word, *rest = self._orders.pop(0)
            try:
                actions[word](*rest)
            except Regroup as error:
                self._group.close()
                self._say("parked", str(error))

    def _control(self) -> None:
        while True:
            try:
                order = self._pipe.recv()
            except EOFError:
                os._exit(0)
            if order[0] == "addresses":
                self._rendezvous.fill(order[1])
            elif order[0] == "park":
                self._group.abandon()
            else:
                with self._told:
                    self._orders.append(order)
                    self._told.notify()

    def _say(self, *words: Any) -> None:
        with self._saying:
            self._pipe.send(words)

    def _form(self, rank: int, generation: int) -> None:
        self._rendezvous = Rendezvous(rank, lambda value: self._say("publish", value))
        self._group = Group(
            rank=rank,
            world=2,
            generation=generation,
            rendezvous=self._rendezvous,
            stethoscope=Stethoscope(),
        )
        self._group.connect(CONNECT_S)
        self._say("formed")

    def _gather(self, value: int) -> None:
        buffer = torch.empty(2 * NUMBERS)
        self._say("gathering")
        self._group.all_gather(buffer, torch.full((NUMBERS,), float(value)))
        self._live.copy_(buffer)
        self._say("gathered", float(self._live.sum()))

    def _restore(self, value: int) -> None:
        self._live.fill_(float(value))
        self._say("restored")

    def _check(self, value: int) -> None:
        self._say("checked", bool((self._live == float(value)).all()))


def rank_process(pipe: Connection) -> None:
    """Be a rank."""
    RankProcess(pipe).run()
