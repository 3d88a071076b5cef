import importlib.util
import json
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

from presets.adapters import base_for
from presets.build import Device
from presets.export import export, export_rsl_rl
from presets.loader import load, to_toml
from presets.problems import PresetError
from presets.trained import find_trained, rebuild
from tests.presets.untrained import untrained_run

SMALL_GROUND = [
    "env.terrain.num_rows=2",
    "env.terrain.num_cols=6",
    "env.terrain.border_width=2.0",
    "trainer.actor.hidden_dims=[16]",
]
PER_ACTION = ("joint_names", "action_scale", "default_joint_pos", "stiffness", "damping")


@pytest.mark.parametrize(
    ("preset", "settings"),
    [
        ("go2_flat", []),
        ("go2_rough", SMALL_GROUND),
        ("franka_reach", []),
        ("cartpole", []),
        ("cartpole_direct", []),
        ("go2_flat", ["trainer.actor.rnn_type=gru", "trainer.actor.rnn_hidden_dim=8"]),
    ],
)
def test_a_file_of_every_preset_acts_as_its_policy_and_says_what_a_controller_needs(
    tmp_path, preset, settings
):
    run = untrained_run(tmp_path / "run", preset, *settings, shift=0.5)
    trained = find_trained(str(run))
    written, _ = export(trained, "onnx", tmp_path / "there/policy.onnx")
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["policy.onnx"]
    session = onnxruntime.InferenceSession(str(written.path))
    kept = session.get_modelmeta().custom_metadata_map

    env, policy = rebuild(trained, Device("cpu"), num_envs=4)
    for key in PER_ACTION:
        assert len(json.loads(kept[key])) == env.num_actions, key
    parts = json.loads(kept["observations"])
    assert {"name", "size", "scale", "clip", "history"} <= parts[0].keys()
    assert (kept["run_id"], kept["preset"]) == ("run", preset)
    assert float(kept["control_dt"]) == env.step_dt
    assert kept["schema_version"] == "1"

    # a controller that reads these metadata, beside the policy in its worlds
    groups = dict.fromkeys(part["group"] for part in parts)
    state = {
        entry.name: np.zeros([4 if size == "batch" else size for size in entry.shape], np.float32)
        for entry in session.get_inputs()[1:]
    }
    for _ in range(5):
        observations = env.observe()
        obs = torch.cat([observations[group] for group in groups], dim=1)
        actions, *following = session.run(None, {"obs": obs.numpy(), **state})
        wanted = policy(observations)
        np.testing.assert_allclose(actions, wanted, atol=1e-5 * max(1, wanted.abs().max()))
        state = dict(zip(state, following, strict=True))
        env.step(wanted)
    env.close()


def test_without_a_place_the_file_goes_into_the_run(tmp_path):
    run = untrained_run(tmp_path / "run", "cartpole")
    written, metadata = export(find_trained(str(run)), "jit")
    assert written.path == run / "exported/cartpole_0.pt"
    assert metadata["action_formula"] == "target = action_offset + action_scale * action"
    assert export_rsl_rl(find_trained(str(run))).name == "cartpole_0_rsl_rl.pt"


def test_a_missing_package_is_named_with_the_way_to_install_it(tmp_path, monkeypatch):
    run = untrained_run(tmp_path / "run", "cartpole")
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "onnx" else find_spec(name)
    )
    with pytest.raises(PresetError, match=r"needs the package onnx.*pip install 'ppo-tui\[export"):
        export(find_trained(str(run)), "onnx")
    export(find_trained(str(run)), "jit")  # needs nothing more
    assert [path.name for path in (run / "exported").iterdir()] == ["cartpole_0.pt"]


@pytest.mark.parametrize("file_format", ["onnx", "jit"])
def test_what_cannot_be_written_is_said_and_leaves_nothing(tmp_path, file_format):
    trained = find_trained(str(untrained_run(tmp_path / "run", "cartpole")))
    with pytest.raises(PresetError, match="is a folder; name a file"):
        export(trained, file_format, tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(PresetError, match="cannot be written"):
        export(trained, file_format, Path(tmp_path / "file/policy"))
    with pytest.raises(PresetError, match="cannot be written"):
        export(trained, file_format, Path("/proc/nowhere/policy"))


@pytest.mark.parametrize(
    "write",
    [partial(export, file_format="onnx"), partial(export, file_format="jit"), export_rsl_rl],
)
def test_a_full_disk_is_said_and_leaves_nothing(tmp_path, write, request):
    trained = find_trained(str(untrained_run(tmp_path / "run", "go2_flat")))
    path = tmp_path / "out/policy"
    request.getfixturevalue("small_files")
    with pytest.raises(PresetError, match=r"/out/policy: cannot be written: File too large$"):
        write(trained, output=path)
    assert not path.parent.exists()


def test_worlds_of_other_programs_are_described_as_far_as_they_tell(tmp_path):
    pytest.importorskip("gymnasium")
    resolved = load(base_for("gymnasium:CartPole-v1"), ["env.adapter=gymnasium:CartPole-v1"])
    path = tmp_path / "pole.toml"
    path.write_text(to_toml(resolved.preset), encoding="utf-8")
    run = untrained_run(tmp_path / "run", str(path))
    written, metadata = export(find_trained(str(run)), "onnx")
    assert written.difference <= 1e-5
    assert metadata["adapter"] == "gymnasium:CartPole-v1"
    assert sum(part["size"] for part in metadata["observations"]) == 4
    assert "joint_names" not in metadata
    assert len(metadata["action_names"]) == dict(written.outputs)["actions"][1]
