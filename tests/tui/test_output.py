"""Output that is closed, full, or read by nobody: real processes, with such a descriptor as 1."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.presets.tiny import TINY, write
from tests.presets.untrained import untrained_run
from trainer.rundir import RunDir

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "tui"]
FULL = "standard output cannot be written: No space left on device\n"
CLOSED = "standard output cannot be written: it is closed\n"


@pytest.fixture(autouse=True)
def _a_folder_with_a_tiny_preset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    write(tmp_path, tiny=TINY)


@pytest.fixture
def two_runs():
    for name in ("a", "b"):
        run = RunDir.create(Path("runs/tiny", name), f"name = 'tiny'\nseed = '{name}'\n")
        run.append_metrics(1, 100, 1.0, {"Train/mean_reward": 1.0})


def call(*args, redirected=None, **streams):
    """Run a command whose descriptors a shell has led elsewhere."""
    shell = ["sh", "-c", f'exec "$@" {redirected}', "sh"] if redirected else []
    return subprocess.run(
        [*shell, *COMMAND, *args],
        stdin=subprocess.DEVNULL,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
        text=True,
        timeout=120,
    )


def call_unread(*args, **streams):
    """Run a command at a pipe whose reader has left."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return call(*args, stdout=writer, **streams)
    finally:
        os.close(writer)


@pytest.mark.parametrize(
    "args",
    ["--version", "--help", "presets", "show tiny", "runs", "runs compare a b"],
)
def test_a_reader_that_has_left_ends_a_command_without_a_word(two_runs, args):
    ended = call_unread(*args.split())
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.parametrize("args", ["--help", "presets", "runs compare a b"])
def test_a_full_disk_and_a_closed_output_are_said_in_a_sentence(two_runs, args):
    ended = call(*args.split(), redirected=">/dev/full")
    assert (ended.returncode, ended.stderr) == (1, FULL)
    ended = call(*args.split(), redirected=">&-")
    assert (ended.returncode, ended.stderr) == (1, CLOSED)


@pytest.mark.parametrize("errors", ["2>&-", "2>/dev/full"])
def test_without_standard_error_too_only_the_code_is_left(errors):
    ended = call("presets", redirected=f">/dev/full {errors}")
    assert (ended.returncode, ended.stderr) == (1, "")
    ended = call("show", "nosuch", redirected=errors)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", "")


def test_a_command_that_was_wrong_keeps_its_code_and_its_sentence():
    ended = call("show", "tinyy", redirected=">/dev/full")
    assert ended.returncode == 2
    assert ended.stderr.startswith('no preset "tinyy"; did you mean tiny?\n')


def test_doctor_looks_no_further_when_its_reader_has_left():
    ended = call_unread("doctor")
    assert (ended.returncode, ended.stderr) == (141, "")


def test_played_episodes_that_cannot_be_told_are_a_failure():
    untrained_run(Path("runs/tiny/a"), "tiny")
    ended = call("play", "a", "--headless", "--episodes", "1", redirected=">/dev/full")
    assert (ended.returncode, ended.stderr) == (1, FULL)


def test_an_export_is_written_though_nobody_reads_what_is_in_it():
    untrained_run(Path("runs/tiny/a"), "tiny")
    ended = call_unread("export", "a", "--format", "jit", "--output", "policy.pt")
    assert (ended.returncode, ended.stderr) == (141, "")
    assert Path("policy.pt").stat().st_size > 1000


PRINTING = """
from sim.terms.registry import reward

@reward
def chatty(env):
    "Says much, is worth nothing."
    print("x" * 9000)
    return env.terminations.terminated.float() * 0
"""


@pytest.mark.parametrize(
    ("redirected", "why"),
    [(">/dev/full", "No space left on device"), (">&- 2>&- <&-", "")],
)
def test_a_training_goes_on_without_its_output(redirected, why):
    ended = call("run", "tiny", "--run-dir", "run", redirected=redirected)
    said = f"the output cannot be written any more ({why}); training goes on without it\n"
    assert (ended.returncode, ended.stderr) == (0, said if why else "")
    assert Path("run/metrics.jsonl").read_text().count('"iteration"') == 4
    assert Path("run/checkpoints/model_4.pt").is_file()
    assert Path("run/log.txt").read_text().count("the output cannot be written any more") == 1


def test_what_own_terms_print_ends_no_training_either():
    Path("mine.py").write_text(PRINTING)
    term = "env.rewards.chatty={ weight = 1.0 }"
    options = ["--run-dir", "run", "--terms", "mine.py", "--set", term]
    ended = call_unread("run", "tiny", *options)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert Path("run/metrics.jsonl").read_text().count('"iteration"') == 4
    assert "Broken pipe" in Path("run/log.txt").read_text()
