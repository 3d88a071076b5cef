"""Weights & Biases: the real library where it is there, a stand-in for what may go wrong."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.trainer.test_resume import finish, new
from trainer.progress import IterationRow
from trainer.trackers import wandb
from trainer.trackers.wandb import ANSWER_TIME, WandbProcess, run_id

STAND_IN = """
import json, os, sys, time
class Error(Exception): pass
class Settings:
    def __init__(self, **settings): pass
class Run:
    url, dir = "https://wandb.test/run", "run/wandb/offline-1/files"
    def log(self, metrics, step):
        with open("logged", "a") as file:
            file.write(json.dumps([step, metrics]) + "\\n")
    def finish(self, exit_code):
        with open("finished", "a") as file:
            file.write(f"{exit_code}\\n")
def init(mode, **settings):
    assert not sys.stdin.isatty() and sys.stdin.read() == ""
    print("a library's chatter")
    what = os.environ.get("STAND_IN")
    if what == "stalls": time.sleep(60)
    if what == "crashes": raise SystemExit(3)
    if mode == "online" and what == "no login": raise Error("No API key configured.")
    with open("settings", "w") as file:
        json.dump({**settings, "mode": mode, "settings": 0, "dir": str(settings["dir"])}, file)
    return Run()
"""


@pytest.fixture
def events(tmp_path, monkeypatch):
    """An empty folder with a run, whose W&B is the stand-in; returns what is told."""
    (tmp_path / "wandb.py").write_text(STAND_IN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join((str(tmp_path), str(Path(__file__).parents[3])))
    )
    monkeypatch.delenv("WANDB_MODE", raising=False)
    # a busy machine is no silent server
    monkeypatch.setattr(wandb, "ANSWER_TIME", 60.0)
    monkeypatch.setattr(wandb, "FINISH_TIME", 60.0)
    Path("run").mkdir()
    Path("run/config.toml").write_text("[trainer]\ngamma = 0.9\n")
    return []


def opened(events):
    process = WandbProcess(
        Path("run"), "robots", "go2", lambda kind, text: events.append((time.monotonic(), text))
    )
    process.open()
    return process


def wait_for(condition, seconds=60.0):
    """Wait until something holds; what it is."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def row(iteration, **metrics):
    return IterationRow(iteration, metrics, 64 * iteration, 1.5 * iteration, 0.0)


def test_rows_and_settings_arrive_and_the_end_is_told(events):
    process = opened(events)
    process.write(row(1, a=1.0, b=float("nan")))
    process.write(row(2, a=2.0))
    process.close(failed=True)
    logged = [json.loads(line) for line in Path("logged").read_text().splitlines()]
    assert logged == [
        [0, {"env_steps": 64, "elapsed": 1.5, "a": 1.0}],
        [1, {"env_steps": 128, "elapsed": 3.0, "a": 2.0}],
    ]
    assert Path("finished").read_text() == "1\n"
    settings = json.loads(Path("settings").read_text())
    assert settings["config"] == {"trainer": {"gamma": 0.9}}
    assert (settings["project"], settings["group"], settings["name"]) == ("robots", "go2", "run")
    assert settings["id"] == "go2-run"
    assert wait_for(lambda: events)[0][1] == "W&B: https://wandb.test/run"
    assert Path("run/log.txt").read_text() == "a library's chatter\n"


def test_without_a_login_the_run_is_kept_offline_and_says_how_to_upload_it(events, monkeypatch):
    monkeypatch.setenv("STAND_IN", "no login")
    opened(events).close(failed=False)
    wait_for(lambda: events)
    ((_, text),) = events
    assert text.startswith("W&B: kept offline (No API key configured.); to upload it: wandb sync ")
    assert json.loads(Path("settings").read_text())["mode"] == "offline"
    assert Path("finished").read_text() == "0\n"


@pytest.mark.parametrize("mode", ["offline", "disabled"])
def test_a_mode_that_is_asked_for_is_taken(events, monkeypatch, mode):
    monkeypatch.setenv("WANDB_MODE", mode)
    opened(events).close(failed=False)
    assert json.loads(Path("settings").read_text())["mode"] == mode
    assert mode in wait_for(lambda: events)[0][1]


def test_a_server_that_is_silent_is_told_within_five_seconds(events, monkeypatch):
    monkeypatch.setattr(wandb, "ANSWER_TIME", ANSWER_TIME)
    monkeypatch.setattr(wandb, "FINISH_TIME", 0.1)
    monkeypatch.setenv("STAND_IN", "stalls")
    started = time.monotonic()
    process = opened(events)
    assert not events  # rows can be passed on at once
    process.write(row(1, a=1.0))
    wait_for(lambda: events)
    (when, text), *_ = events
    assert text == "W&B has not answered for 4 s; training goes on"
    assert when - started < 5.0
    process.close(failed=False)
    assert "W&B has not finished; process" in events[-1][1]
    process._process.kill()
    process._process.wait()


def test_a_process_that_ends_by_itself_is_an_error_that_names_its_code(events, monkeypatch):
    monkeypatch.setenv("STAND_IN", "crashes")
    process = opened(events)
    process._process.wait()
    with pytest.raises(OSError, match="ended with code 3"):
        process.write(row(1))


def test_a_killed_training_leaves_a_finished_run(events):
    """The pipe ends without a word: W&B's run is closed all the same, as failed."""
    child = subprocess.Popen(
        [sys.executable, "-m", "trainer.trackers.wandb_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    names = {"folder": "run", "project": "p", "group": "g", "name": "n", "id": "i"}
    child.communicate(json.dumps(names) + "\n")
    assert Path("finished").read_text() == "1\n"


@pytest.mark.parametrize(
    ("name", "known_as"), [("go2-2026-01-01_00-00-00", None), ("a/b:c é#", "a-b-c---")]
)
def test_an_identifier_is_made_of_letters_that_wandb_takes(name, known_as):
    assert run_id(name) == (known_as or name)


def test_the_real_library_keeps_a_run_offline_without_login_terminal_or_question(
    tmp_path, monkeypatch
):
    pytest.importorskip("wandb", reason="needs the extra ppo-tui[wandb]")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("WANDB_API_KEY", "WANDB_MODE", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")  # nobody may be asked
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    session = finish(new(tmp_path / "run", 3, logger="wandb"))

    def told(what):
        _, events = session.events.since(0)
        return next((event for event in events if event.text.startswith(what)), None)

    # a busy machine may be slower than the run: then W&B's process finishes after it
    wait_for(lambda: told("W&B: kept offline"))
    assert told("W&B").time - told("toy").time < 5.0
    (data,) = wait_for(lambda: [*(tmp_path / "run").glob("wandb/offline-run-*/run-*.wandb")])
    wait_for(lambda: b"Loss/value" in data.read_bytes())
