"""`ppo-tui runs` and `ppo-tui runs compare`, in a pipe and in a terminal."""

import json
import os
import sys
from pathlib import Path

import pexpect
import pytest
from typer.testing import CliRunner

from trainer.rundir import RunDir
from tui import cli

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def call(*args):
    return CliRunner().invoke(cli.app, ["runs", *args], prog_name="ppo-tui")


def train(name, rewards, gamma=0.99, state="finished", preset="go2_flat"):
    """Leave behind the folder of a run."""
    config = f'name = "{preset}"\n[trainer]\ngamma = {gamma}\nnum_iterations = {len(rewards)}\n'
    run = RunDir.create(Path("runs", preset, name), config)
    for number, reward in enumerate(rewards, start=1):
        metrics = {"Train/mean_reward": reward, "Loss/value": 0.5}
        run.append_metrics(number, 1000 * number, 1.5 * number, metrics)
    run.write_status(
        {"state": state, "pid": 2**22 + 1, "preset": preset, "num_iterations": len(rewards)}
    )
    return run


@pytest.fixture
def two():
    train("2026-01-01_00-00-00", [1.0, 3.0, 2.0])
    train("2026-01-02_00-00-00_wide", [2.0, 4.0, 6.0, 8.0], 0.98, "running")


def test_runs_are_listed_the_newest_first_in_whole_words(two):
    result = call()
    head, newest, oldest = result.output.splitlines()
    assert result.exit_code == 0
    assert head.split()[:7] == ["preset", "run", "state", "iterations", "steps", "reward", "best"]
    assert newest.split() == [
        "go2_flat", "2026-01-02_00-00-00_wide", "killed", "4/4", "4000", "8.000", "8.000",
        "00:00:06", "2026-01-02", "00:00", "runs/go2_flat/2026-01-02_00-00-00_wide",
    ]  # fmt: skip
    assert oldest.split()[1:7] == [
        "2026-01-01_00-00-00",
        "finished",
        "3/3",
        "3000",
        "2.000",
        "3.000",
    ]
    assert "\x1b" not in result.output


def test_as_json_nothing_is_rounded_and_what_is_not_known_is_null(two):
    Path("runs/go2_flat/2026-01-01_00-00-00/metrics.jsonl").unlink()
    newest, oldest = json.loads(call("--json").output)
    assert newest["folder"] == "runs/go2_flat/2026-01-02_00-00-00_wide"
    assert (newest["state"], newest["elapsed"], newest["name"]) == ("killed", 6.0, "wide")
    assert newest["started"] == "2026-01-02T00:00:00+00:00"
    assert (oldest["last_reward"], oldest["iterations"]) == (None, None)


def test_one_preset_only_and_none_at_all(two):
    train("2026-01-03_00-00-00", [1.0], preset="cartpole")
    assert len(call("--preset", "cartpole").output.splitlines()) == 2
    assert call("--preset", "zzz").output.startswith("no runs of zzz in runs/; train one: ")
    assert json.loads(call("--preset", "zzz", "--json").output) == []


def test_an_empty_folder_says_what_to_do():
    result = call()
    assert result.exit_code == 0
    assert result.output.startswith("no runs in runs/ here; train one: ppo-tui run PRESET")


def test_foreign_and_damaged_folders_are_listed_for_what_they_are(two):
    for name, text in (("a", "not toml"), ("b", "")):
        folder = Path("runs/other", name)
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text(text)
        (folder / "status.json").write_bytes(b"\xff{")
        (folder / "metrics.jsonl").write_bytes(b"[1]\n\x00\n")
    Path("runs/notes.txt").touch()
    lines = call().output.splitlines()
    assert [line.split()[2] for line in lines[1:]] == ["unknown", "unknown", "killed", "finished"]


def test_two_runs_side_by_side(two):
    result = call("compare", "2026-01-01_00-00-00", "latest")
    assert result.exit_code == 0
    text = result.output
    assert text.isascii()
    assert "\x1b" not in text
    lines = [line.split() for line in text.splitlines()]
    assert ["trainer.gamma", "0.99", "0.98"] in lines
    assert ["trainer.num_iterations", "3", "4"] in lines
    assert ["iterations", "3", "4"] in lines
    assert ["Train/mean_reward", "(best)", "3.000", "8.000"] in lines
    assert ["Loss/value", "0.5000", "0.5000"] in lines
    chart = text[text.index("Mean reward by env steps") :]
    assert chart.count("A") > 20
    assert chart.count("B") > 20
    assert "4,000" in chart


def test_a_comparison_as_json(two):
    runs = json.loads(call("compare", "latest", "2026-01-01_00-00-00", "--json").output)
    assert runs["settings"]["trainer.gamma"] == ["0.98", "0.99"]
    assert runs["metrics"]["Train/mean_reward (best)"] == [8.0, 3.0]
    assert [run["state"] for run in runs["runs"]] == ["killed", "finished"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("latest",), "give two or more runs"),
        (("latest", "2026-01-02_00-00-00_wide"), "is named twice"),
        (("latest", "2026-01-09"), 'no run "2026-01-09"; did you mean'),
    ],
)
def test_what_cannot_be_compared_is_refused(two, args, said):
    result = call("compare", *args)
    assert result.exit_code == 2
    assert said in result.stderr


def in_terminal(*args, columns=80, **environment):
    inherited = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    environment = {**inherited, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **environment}
    child = pexpect.spawn(
        sys.executable,
        ["-m", "tui", "runs", *args],
        dimensions=(40, columns),
        encoding="utf-8",
        env=environment,
    )
    output = child.read()
    child.close()
    assert child.exitstatus == 0, output
    return output


def test_a_narrow_terminal_leaves_columns_out_and_breaks_no_line(two):
    for columns in (120, 80, 60, 30):
        lines = in_terminal(columns=columns).replace("\r", "").splitlines()
        assert len(lines) == 3
        assert max(map(len, lines)) <= columns
        assert "2026-01-02_00-00-00_wide" in lines[1]


def test_in_a_terminal_curves_have_colours_and_their_letter_at_the_end(two):
    names = ("compare", "latest", "2026-01-01_00-00-00")
    output = in_terminal(*names, NO_COLOR="")
    chart = output[output.index("Mean reward by") :]
    assert "\x1b[" in chart
    assert chart.count("A") == chart.count("B") == 1
    assert any("\u2800" < character <= "\u28ff" for character in chart)
    plain = in_terminal(*names, NO_COLOR="1", LC_ALL="C")
    assert "\x1b" not in plain
    assert plain.isascii()
