import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from presets.build import Device
from presets.problems import PresetError
from presets.resume import resumed_session
from presets.trained import find_trained, quiet, rebuild
from tests.presets.tiny import TINY, write
from tests.presets.untrained import untrained_run
from tests.tui.fake_session import run_info
from trainer.wire import to_json

CPU = Device("cpu")


@pytest.fixture(autouse=True)
def _a_folder_with_a_tiny_preset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write(tmp_path, tiny=TINY)


def refused(name):
    with pytest.raises(PresetError) as refusal:
        find_trained(name)
    return "\n".join(refusal.value.messages)


def test_a_policy_is_found_by_folder_name_latest_and_checkpoint():
    older = untrained_run(Path("runs/tiny/2026-01-01_00-00-00"), "tiny")
    newer = untrained_run(Path("runs/tiny/2026-01-02_00-00-00_mine"), "tiny")
    other = untrained_run(Path("runs/cartpole/2026-01-03_00-00-00"), "cartpole")
    assert find_trained(str(older)).folder == older
    assert find_trained("2026-01-01_00-00-00").folder == older
    assert find_trained("tiny/2026-01-02_00-00-00_mine").folder == newer
    assert find_trained("tiny/latest").folder == newer
    assert find_trained("latest").folder == other
    trained = find_trained(str(older / "checkpoints/model_0.pt"))
    assert trained.folder.samefile(older)
    assert trained.checkpoint.name == "model_0.pt"
    assert trained.resolved.preset.name == "tiny"


def test_the_newest_run_without_a_checkpoint_is_passed_over_and_named():
    older = untrained_run(Path("runs/tiny/2026-01-01_00-00-00"), "tiny")
    newer = untrained_run(Path("runs/tiny/2026-01-02_00-00-00"), "tiny")
    (newer / "checkpoints/model_0.pt").write_bytes(b"cut")
    trained = find_trained("tiny/latest")
    assert trained.folder == older
    assert "cut short" in trained.notes[0]
    assert trained.notes[1] == f"{newer}: has no readable checkpoint"


def test_a_run_with_own_terms_asks_for_their_files(tmp_path):
    run = untrained_run(Path("runs/tiny/one"), "tiny")
    info = replace(run_info(10), own_terms=("/terms/mine.py", "/terms/more of.py"))
    (run / "info.json").write_text(to_json(info))
    asked = "add --terms /terms/mine.py --terms '/terms/more of.py'"
    assert refused("one") == f"{run}: trained with terms of its own; {asked}"
    with pytest.raises(PresetError, match="trained with terms of its own"):
        resumed_session("tiny", "one", CPU)
    own = tmp_path / "moved.py"
    own.write_text(
        "from sim.terms.registry import reward\n\n@reward\ndef mine(env):\n    return env.x\n"
    )
    assert find_trained("one", [own]).folder == run


def test_what_cannot_be_played_is_refused_in_sentences():
    run = untrained_run(Path("runs/tiny/one"), "tiny")
    assert 'no run "on"; did you mean one?' in refused("on")
    (run / "checkpoints/model_0.pt").rename("alone.pt")
    assert refused("alone.pt").startswith("alone.pt: lies in no run's folder")
    assert refused("one") == "runs/tiny/one: has no checkpoint yet"
    (run / "checkpoints/model_5.pt").write_text("not one")
    assert "model_5.pt: not readable as a checkpoint" in refused("one")
    assert "model_5.pt: not readable" in refused("runs/tiny/one/checkpoints/model_5.pt")


def test_the_worlds_are_those_of_the_run_whatever_has_become_of_the_preset():
    run = untrained_run(
        Path("run"),
        "tiny",
        "trainer.actor.hidden_dims=[6, 5]",
        "env.observations.policy.joint_vel_rel=false",
    )
    write(Path(), tiny=TINY.replace("hidden_dims = [8]", "hidden_dims = [64, 64, 64]"))
    env, policy = rebuild(find_trained(str(run)), CPU, num_envs=3)
    assert env.num_envs == 3
    assert [name for name, _ in env.observation_terms["policy"]] == ["joint_pos_rel"]
    assert policy.actor.mlp[0].weight.shape == (6, 2)
    assert policy(env.observe()).shape == (3, 1)


def test_nothing_happens_in_quiet_worlds_but_what_the_policy_does():
    run = untrained_run(Path("run"), "go2_flat", "env.observations.policy.base_lin_vel.scale=2.0")
    trained = find_trained(str(run))
    before, still = trained.resolved.preset, quiet(trained.resolved.preset, 5, seed=9)
    assert (still.env.num_envs, still.trainer.seed) == (5, 9)
    assert set(before.env.events) - set(still.env.events) == {"push_robot"}
    for group in still.env.observations.values():
        assert all(term.noise is None for term in group.values())
    assert still.env.observations["policy"]["base_lin_vel"].scale == 2.0
    assert still.env.rewards == before.env.rewards
    env, _ = rebuild(trained, CPU, num_envs=2)
    assert torch.equal(env.observe()["policy"], env.observe()["policy"])


def test_weights_and_ranges_are_those_that_training_had_reached():
    run = untrained_run(Path("run"), "franka_reach")
    trained = find_trained(str(run))
    trained.state["env"]["rewards"]["weights"]["action_rate"] = -0.005
    trained.state["env"]["commands"]["ee_pose"]["ranges"]["pos_x"] = [0.4, 0.41]
    env, _ = rebuild(trained, CPU, num_envs=2)
    assert env.reward_terms["action_rate"] == -0.005
    assert env.command_ranges["ee_pose"]["pos_x"] == (0.4, 0.41)
    assert not env.curriculum.terms


def test_a_policy_that_does_not_fit_the_runs_settings_is_refused():
    run = untrained_run(Path("run"), "tiny")
    config = (run / "config.toml").read_text()
    (run / "config.toml").write_text(config.replace("hidden_dims = [8]", "hidden_dims = [4]"))
    with pytest.raises(PresetError) as refusal:
        rebuild(find_trained(str(run)), CPU, num_envs=2)
    assert "does not fit the run's config.toml" in refusal.value.messages[0]
    assert "mlp.0.weight is [8, 4], not [4, 4]" in refusal.value.messages[0]


def test_a_checkpoint_from_a_gpu_plays_where_there_is_none():
    run = untrained_run(Path("run"), "tiny")
    path = run / "checkpoints/model_0.pt"
    # every tensor says where it lived; torch writes that as a text of its length and letters
    with zipfile.ZipFile(path) as archive:
        files = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    (name,) = [name for name in files if name.endswith("data.pkl")]
    here, there = b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:1"
    assert here in files[name]
    files[name] = files[name].replace(here, there)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for filename, data in files.items():
            archive.writestr(filename, data)
    env, policy = rebuild(find_trained(str(run)), CPU, num_envs=2)
    assert policy(env.observe()).device.type == "cpu"
    assert json.dumps(find_trained(str(run)).state["completed_iterations"]) == "0"
