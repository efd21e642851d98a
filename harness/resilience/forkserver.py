"""A prewarmed process from which members are forked: 0.1 s instead of the 4 s of a fresh start.

A fork is sound only from a process with a single thread (with two torch threads every child hung, measured), without a
process group and without CUDA. Where that does not hold, members start afresh instead.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from typing import NoReturn

import torch

from harness.resilience import messages

FORK_VARIABLE = "RANKDRILL_FORK"


def unsound_because() -> str | None:
    """Why this process must not be forked, or None."""
    if os.environ.get(FORK_VARIABLE) == "never":
        return "forking is switched off"
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        return f"the process has {threads} threads; set one torch thread before the first operation and start none"
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return "CUDA is in use"
    return None


def serve(link: socket.socket) -> socket.socket:
    """Fork members on demand. Returns, with a link of its own, in each member; never returns in the server."""
    # What is loaded now lives as long as the process. Kept out of the collector's sight, it costs members neither time
    # nor, since looking at an object writes to its page, a copy of the memory they share.
    gc.collect()
    gc.freeze()
    while True:
        received = messages.receive(link)
        if received is None or received[0]["is"] == "stop":
            leave()
        if received[0]["is"] == "fork":
            own = _fork_member(link)
            if own is not None:
                return own


def _fork_member(link: socket.socket) -> socket.socket | None:
    """Fork twice, so that the agent (a child subreaper) becomes the member's parent and can wait for it by pidfd."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child != 0:
        os.waitpid(child, 0)
        return None
    if os.fork() != 0:
        os._exit(0)
    link.close()
    # SIGINT ends a member as SIGTERM and SIGKILL do: at once, without a traceback, with the same consequence.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    own = messages.connect()
    own.send(messages.encode({"is": "hello", "pid": os.getpid(), "forked": True}))
    return own


def leave() -> NoReturn:
    """End without running the program's own exit handlers."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
