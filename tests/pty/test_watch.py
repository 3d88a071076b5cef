"""Watching a run from other terminals: live, with control, two at once, killed, replayed."""

import os
import re
import signal
import stat

from tests.pty.conftest import iterations, wait_until


def test_others_attach_control_and_detach_and_learn_of_a_kill(toy):
    owner = toy.train()
    owner.wait_until(lambda: iterations(owner) >= 2, 120, "iterations")
    assert stat.S_IMODE((toy.folder / "watch.sock").stat().st_mode) == 0o600

    one, two = toy.watch(), toy.watch("--read-only", columns=80, rows=24)
    for watcher in (one, two):
        watcher.wait_until(lambda: iterations(watcher) >= 2, 60, "iterations")  # noqa: B023

    two.send(" .c")  # it only reads, and says so
    two.wait_for("This window only looks")
    assert "PAUSED" not in owner.text
    one.send(" ")
    for terminal in (one, two, owner):
        terminal.wait_for("PAUSED behind")
    one.send(">")
    for terminal in (one, two):
        terminal.wait_for("PAUSED behind fresh")
    done = iterations(one)
    one.send(" ")
    for terminal in (owner, one, two):
        terminal.wait_until(lambda: iterations(terminal) > done + 2, 30, "running on")  # noqa: B023

    two.send("q")
    assert two.wait_for_end() == 0
    assert two.is_restored()
    assert b"the run goes on" in two.raw

    os.kill(toy.pid, signal.SIGKILL)
    one.wait_for("KILLED")
    one.send("q")
    assert one.wait_for_end() == 0
    assert b"toy was killed after" in one.raw
    owner.wait_for_end()
    assert owner.is_restored()
    assert b"ppo-tui run --resume latest   goes on" in owner.raw.rpartition(b"\x1b[?1049l")[2]

    replay = toy.watch()
    replay.wait_for("KILLED")
    assert not (toy.folder / "watch.sock").exists()
    replay.send("q")
    assert replay.wait_for_end() == 0


def test_a_watcher_ends_a_detached_run_and_its_record_is_replayed(toy):
    owner = toy.train()
    owner.wait_until(lambda: iterations(owner) >= 2, 120, "iterations")
    owner.send("d")
    assert owner.wait_for_end() == 0
    watcher = toy.watch()
    watcher.wait_until(lambda: iterations(watcher) >= 8, 60, "iterations")
    watcher.hang_up()  # a watcher's terminal is no loss
    toy.wait_for_rows(2)
    watcher = toy.watch()
    watcher.wait_until(lambda: iterations(watcher) >= 8, 60, "iterations")
    watcher.send("q")
    watcher.wait_for("End this run?")
    watcher.send("s")
    assert watcher.wait_for_end() == 0
    wait_until(lambda: toy.status["state"] == "finished", 20, "the end")

    done = toy.status["completed_iterations"]
    replay = toy.watch(columns=100, rows=30)
    replay.wait_for("FINISHED", 60)
    replay.wait_until(lambda: iterations(replay) == done, 10, "the last iteration")
    replay.wait_until(lambda: re.search(rf"it +{done} ─", replay.text), 5, "the slider's number")
    replay.send("\x1b[D\x1b[D")
    replay.wait_until(lambda: iterations(replay) == done - 2, 10, "two back")
    replay.send("\x1b[H")
    replay.wait_until(lambda: iterations(replay) == 1, 10, "the first")
    replay.send("++ ")
    replay.wait_until(lambda: 3 <= iterations(replay) < done, 10, "playing")
    replay.send(" ")
    replay.wait_for("recorded")
    replay.send("3")
    replay.wait_for("[3 Update]")
    replay.wait_until(lambda: re.search(r"KL", replay.text), 5, "the KL strip")
    replay.send("q")
    assert replay.wait_for_end() == 0
    assert replay.is_restored()
