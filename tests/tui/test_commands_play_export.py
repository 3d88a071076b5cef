import json
from pathlib import Path

import onnx
import pytest
from typer.testing import CliRunner

from tests.presets.tiny import TINY, write
from tests.presets.untrained import untrained_run
from tui import cli


@pytest.fixture(autouse=True)
def _a_run_of_a_tiny_preset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write(tmp_path, tiny=TINY)
    untrained_run(Path("runs/tiny/2026-01-01_00-00-00"), "tiny")


def call(*args):
    return CliRunner().invoke(cli.app, list(args), prog_name="ppo-tui")


def test_episodes_are_counted_in_a_table_or_as_json():
    result = call("play", "latest", "--headless", "--episodes", "3", "--seed", "5")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "return" in result.stdout
    assert "of 3 episodes" in result.stdout
    first, again = (
        json.loads(call("play", "tiny/latest", "--episodes", "3", "--seed", "5", "--json").stdout)
        for _ in range(2)
    )
    assert first == again
    assert (first["episodes"], first["worlds"], first["seed"]) == (3, 3, 5)
    assert len(first["each"]) == 3
    assert first["each"][0]["length"] <= 50  # the run's own time limit, 1 s of 0.02 s steps


def test_fewer_worlds_play_more_episodes_each():
    played = json.loads(
        call("play", "latest", "--json", "--episodes", "5", "--num-envs", "2").stdout
    )
    assert [episode["world"] for episode in played["each"]] == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("command", ["play", "export"])
@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nothing"], 'nothing: no run "nothing"; the newest: 2026-01-01_00-00-00'),
        (["other/latest"], "other/latest: runs/other holds no run"),
        (["presets/tiny.toml"], "presets/tiny.toml: lies in no run's folder"),
        (["presets"], "presets: holds no run, there is no config.toml"),
    ],
)
def test_a_run_that_cannot_be_found_is_refused_in_a_line(command, args, said):
    before = sorted(Path().rglob("*"))
    result = call(command, *args)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["play", "latest", "--episodes", "0"], "--episodes 0: must be at least 1"),
        (["play", "latest", "--num-envs", "-1"], "--num-envs -1: must be at least 1"),
        (["play", "latest", "--seed", "-1"], "--seed -1: must be from 0 to 4294967295"),
        (["play", "latest", "--device", "gpu"], "--device gpu: allowed"),
        (["export", "latest", "--format", "onxx"], "did you mean onnx?"),
        (["export", "latest", "--output", "presets"], "presets: is a folder; name a file"),
        (["export", "latest", "--output", "/dev/null"], "/dev/null: is no regular file"),
    ],
)
def test_what_makes_no_sense_is_refused(args, said):
    result = call(*args)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not Path("runs/tiny/2026-01-01_00-00-00/exported").exists()


def test_a_run_without_a_whole_checkpoint_is_refused_with_the_reason():
    Path("runs/tiny/2026-01-01_00-00-00/checkpoints/model_0.pt").write_bytes(b"")
    for command in ("play", "export"):
        result = call(command, "2026-01-01_00-00-00")
        assert result.exit_code == 2
        assert "model_0.pt: not readable as a checkpoint: it is cut short" in result.stderr
        assert "has no readable checkpoint" in result.stderr


def test_an_export_says_what_is_in_the_file():
    result = call("export", "tiny/latest", "--output", "policy.onnx")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["in", "obs", "[batch,", "4]"] in lines
    assert ["out", "actions", "[batch,", "1]"] in lines
    assert ["0-1", "joint_pos_rel", "1", "-", "policy"] in lines
    assert ["0", "slider_to_cart", "100", "0", "0", "0", "400", "effort"] in lines
    assert "actions differ by" in result.stdout
    onnx.checker.check_model(onnx.load("policy.onnx"))


def test_other_formats_go_into_the_run():
    assert call("export", "latest", "--format", "jit").exit_code == 0
    assert call("export", "latest", "--format", "rsl_rl").exit_code == 0
    exported = Path("runs/tiny/2026-01-01_00-00-00/exported")
    assert sorted(path.name for path in exported.iterdir()) == ["tiny_0.pt", "tiny_0_rsl_rl.pt"]
