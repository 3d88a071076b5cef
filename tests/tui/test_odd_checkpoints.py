"""Checkpoints that lack a part, or hold another kind of thing in its place."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from presets.build import Device, new_session
from presets.loader import load
from presets.problems import PresetError
from presets.resume import resumed_session
from tests.presets.tiny import TINY, write
from trainer.contents import LEARNER
from tui import cli

ROOT = Path(__file__).parents[2]
RUN = Path("runs/tiny/a")
CHECKPOINT = RUN / "checkpoints/model_2.pt"
WORLDS = ("generator", "env", "obs", "episodes")
TOLD = ("env_steps", "elapsed", "mean_reward", "preset", "device", "actor_hidden", "critic_hidden")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    write(folder, tiny=TINY)
    before = Path.cwd()
    os.chdir(folder)
    try:
        flags = {"--iterations": 2, "--seed": 1}
        finish(new_session(load("tiny", flags=flags), Device("cpu"), RUN))
    finally:
        os.chdir(before)
    return folder


@pytest.fixture(autouse=True)
def _a_copy(trained, tmp_path, monkeypatch):
    shutil.copytree(trained, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def finish(session):
    session.start()
    assert session.join(60)
    return session.snapshot()


def go_on():
    return resumed_session("tiny", "a", Device("cpu"), (), {"--iterations": 3})


def call(*args):
    return CliRunner().invoke(cli.app, list(args), prog_name="ppo-tui")


def program(*args):
    command = [sys.executable, "-m", "tui", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def change(without=(), **parts):
    """Write the checkpoint again, without some of its parts and with others in their place."""
    state = torch.load(CHECKPOINT, weights_only=True)
    kept = {name: part for name, part in state.items() if name not in without}
    torch.save(kept | parts, CHECKPOINT)


def files():
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", [*TOLD, *WORLDS])
def test_a_part_that_the_learner_can_do_without_may_be_missing(name):
    change(without=[name])
    session = go_on()
    snapshot = finish(session)
    assert snapshot.failure is None
    assert snapshot.completed_iterations == 3
    said = [note for note in snapshot.info.notes if "begin anew" in note]
    if name in WORLDS:
        how_hard = "" if name == "env" else ", as hard as they were"
        assert said == [
            f"the worlds begin anew{how_hard}; model_2.pt holds no {name}: the learner goes on"
        ]
    else:
        assert said == []
    assert call("play", "a", "--headless", "--episodes", "1").exit_code == 0


@pytest.mark.parametrize("name", LEARNER)
def test_without_a_part_of_the_learner_nothing_goes_on_and_nothing_is_touched(name):
    change(without=[name])
    before = files()
    with pytest.raises(PresetError) as refused:
        go_on()
    assert refused.value.messages == [
        f"{CHECKPOINT}: lacks {name}",
        f"{RUN}: has no readable checkpoint",
    ]
    assert files() == before


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"device": 3}, "device must be a text, not 3"),
        ({"completed_iterations": "2"}, "completed_iterations must be a whole number"),
        ({"actor": [1]}, "actor must be a table of tensors, not list"),
        ({"optimizer": {"state": {}}}, "optimizer must be an optimizer's state, not dict"),
        ({"schema_version": None, "actor_state_dict": {}}, "it is one of RSL-RL's"),
    ],
)
def test_another_kind_of_thing_in_its_place_is_named_before_anything_is_touched(parts, said):
    change(**parts)
    before = files()
    with pytest.raises(PresetError) as refused:
        go_on()
    assert f"{CHECKPOINT}: not readable as a checkpoint: {said}" in refused.value.messages[0]
    for command in (["play", "a", "--headless"], ["export", "a"], ["export", str(CHECKPOINT)]):
        result = call(*command)
        assert (result.exit_code, result.stdout) == (2, "")
        assert said in result.stderr
    assert files() == before


def test_an_older_checkpoint_that_is_whole_is_taken_and_the_other_named():
    shutil.copy(CHECKPOINT, CHECKPOINT.with_name("model_1.pt"))
    change(without=["optimizer"])
    session = go_on()
    session.run_dir.release()
    assert f"{CHECKPOINT}: lacks optimizer" in session._notes


def test_a_policy_alone_plays_and_is_exported_but_not_as_a_training():
    change(without=[*LEARNER[1:], *TOLD, *WORLDS])
    assert call("play", "a", "--headless", "--episodes", "1").exit_code == 0
    assert call("export", "a", "--format", "jit", "--output", "policy.pt").exit_code == 0
    result = call("export", "a", "--format", "rsl_rl", "--output", "new/policy.pt")
    assert result.exit_code == 2
    assert result.stderr == f"{CHECKPOINT}: lacks critic, optimizer, completed_iterations\n"
    assert not Path("new").exists()


def test_worlds_that_do_not_fit_end_a_run_and_no_playing_by_a_trace():
    change(env={"rewards": 3})
    failure = finish(go_on()).failure
    assert failure.message.startswith("CheckpointError: the checkpoint's env does not fit: ")
    result = call("play", "a", "--headless", "--episodes", "1")
    assert result.exit_code == 2
    assert result.stderr.startswith("the checkpoint's env does not fit: ")


def test_the_program_goes_on_from_an_old_checkpoint_and_refuses_a_stripped_one():
    change(without=TOLD)
    ended = program("run", "tiny", "--resume", "a", "--iterations", "3", "--headless")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "goes on after 2 iterations" in ended.stdout
    change(without=["actor"])
    shutil.copy(CHECKPOINT, CHECKPOINT.with_name("model_3.pt"))
    for command in (
        ["run", "tiny", "--resume", "a", "--iterations", "4", "--headless"],
        ["play", "a", "--headless"],
    ):
        ended = program(*command)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert "model_3.pt: lacks actor\n" in ended.stderr
        assert "Traceback" not in ended.stderr
