from __future__ import annotations

import os
import signal
from pathlib import Path

from chaos import processes, undo
from chaos.clock import SystemClock
from chaos.ledger_state import Entry, Owner, Undo
from tests.fakes.chaos_fakes import TAG_VARIABLE, is_alive, states_of, victim, wait_stopped
from tests.fakes.waiting import wait_until

FORKING = """
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        for _ in range(30):
            signal.sigtimedwait([signal.SIGUSR1], 0.002)
            if os.fork():
                signal.sigtimedwait([signal.SIGUSR1], 0.05)
                os._exit(0)
    signal.sigtimedwait([signal.SIGUSR1], 0.02)
"""


def owner(boot: str | None = None) -> Owner:
    return Owner("r1", os.getpid(), 1, boot or processes.boot_id(), processes.pid_namespace(), processes.host_name())


def perform(step: Undo, by: Owner | None = None) -> str:
    return undo.perform(step, by or owner(), SystemClock())


def tagged_pids(value: str) -> list[int]:
    return [pid for pid, _ in processes.tagged(TAG_VARIABLE, value)]


def test_a_stopped_process_runs_again() -> None:
    with victim() as held:
        os.kill(held.pid, signal.SIGSTOP)
        wait_stopped(held)
        assert perform(undo.send_signal(held.pid, held.started_ticks, "CONT")) == ""
        assert not processes.is_stopped(states_of(held))


def test_a_recycled_pid_is_never_signalled() -> None:
    """The same pid with another start time is somebody else."""
    with victim() as held:
        os.kill(held.pid, signal.SIGSTOP)
        wait_stopped(held)
        assert perform(undo.send_signal(held.pid, held.started_ticks - 1, "CONT")) == ""
        assert perform(undo.send_signal(held.pid, held.started_ticks - 1, "KILL")) == ""
        assert processes.is_stopped(states_of(held))


def test_a_process_that_is_gone_needs_no_undo() -> None:
    with victim() as held:
        pass
    assert perform(undo.send_signal(held.pid, held.started_ticks, "CONT")) == ""


def test_after_a_reboot_pids_mean_nobody() -> None:
    before = owner(boot="another")
    with victim("undo-reboot") as held:
        os.kill(held.pid, signal.SIGSTOP)
        wait_stopped(held)
        assert perform(undo.send_signal(held.pid, held.started_ticks, "CONT"), before) == ""
        assert perform(undo.kill_tagged(TAG_VARIABLE, "undo-reboot"), before) == ""
        assert processes.is_stopped(states_of(held))


def test_every_tagged_process_is_killed_and_nobody_else() -> None:
    with victim("undo-a") as mine, victim("undo-a") as stopped, victim("undo-ab") as other, victim() as bare:
        os.kill(stopped.pid, signal.SIGSTOP)
        wait_stopped(stopped)
        assert perform(undo.kill_tagged(TAG_VARIABLE, "undo-a")) == ""
        assert [is_alive(who) for who in (mine, stopped, other, bare)] == [False, False, True, True]


def test_processes_that_fork_while_they_are_killed() -> None:
    with victim("undo-fork", FORKING):
        wait_until(lambda: len(tagged_pids("undo-fork")) > 4, what="some forks")
        assert perform(undo.kill_tagged(TAG_VARIABLE, "undo-fork")) == ""
        assert tagged_pids("undo-fork") == []


def tree(folder: Path, tag: str) -> Path:
    folder.mkdir()
    undo.tag_folder(str(folder), tag)
    (folder / "logs" / "deep").mkdir(parents=True)
    (folder / "logs" / "deep" / "a").write_text("x")
    (folder / "bell").symlink_to("/nowhere")
    return folder


def test_our_tree_is_removed_and_what_it_links_to_is_not(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("x")
    folder = tree(tmp_path / "work", "r1")
    (folder / "link").symlink_to(elsewhere)
    step = undo.remove_tree(str(folder), "r1")
    assert (perform(step), folder.exists()) == ("", False)
    assert (elsewhere / "precious").exists()
    assert perform(step) == "", "doing it again is harmless"


def test_a_tree_that_is_not_tagged_as_ours_is_left_alone(tmp_path: Path) -> None:
    folder = tree(tmp_path / "work", "another")
    assert "not ours" in perform(undo.remove_tree(str(folder), "r1"))
    assert (folder / "logs/deep/a").exists()


def test_a_link_in_the_place_of_our_tree_is_left_alone(tmp_path: Path) -> None:
    folder = tree(tmp_path / "work", "r1")
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert "not a folder of ours" in perform(undo.remove_tree(str(link), "r1"))
    assert (folder / "logs/deep/a").exists()


def test_a_folder_made_but_not_tagged_before_a_crash_is_removed_if_empty(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    assert (perform(undo.remove_tree(str(folder), "r1")), folder.exists()) == ("", False)


def test_an_undo_that_is_not_understood_is_not_done() -> None:
    assert "unknown undo" in perform({"do": "levitate"})
    assert "lacks 'pid'" in perform({"do": "signal"})


def test_an_entry_is_undone_in_its_order_and_to_its_end(tmp_path: Path) -> None:
    folder = tree(tmp_path / "work", "r1")
    steps = ({"do": "levitate"}, undo.remove_tree(str(folder), "r1"))
    entry = Entry("run", steps, 0.0, renewed=False)
    assert "unknown undo" in undo.undo_entry(entry, owner(), SystemClock())
    assert not folder.exists()
