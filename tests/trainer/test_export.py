import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from trainer import export
from trainer.config import Activation, ActorConfig
from trainer.export import ExportError, write_jit, write_onnx
from trainer.inference import Policy
from trainer.observation_sets import ObservationSet
from trainer.policy import Actor

NUM_OBS, NUM_ACTIONS = 5, 3
METADATA = {"run_id": "a run", "joint_names": ["left", "right"], "control_dt": 0.02}


def policy(clip_actions=None, **settings):
    """A policy with random weights, whose normaliser has seen something."""
    torch.manual_seed(0)
    config = ActorConfig(**{"hidden_dims": (16, 8), "obs_normalization": True, **settings})
    actor = Actor(config, NUM_OBS, NUM_ACTIONS)
    if config.obs_normalization:
        actor.obs_normalizer.update(6.5 + 5.7 * torch.randn(50, NUM_OBS))
    with torch.no_grad():
        actor.mlp[-1].weight.mul_(5.0)
    return Policy(actor, ObservationSet(("policy",)), clip_actions)


def session(path):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def observations(count):
    return 6.5 + 6 * torch.randn(count, NUM_OBS, generator=torch.Generator().manual_seed(1))


def mean(trained, obs):
    return trained({"policy": obs}).numpy()


@pytest.mark.parametrize("activation", Activation.__args__)
def test_the_file_acts_as_the_policy_does_in_any_number_of_worlds(tmp_path, activation):
    trained = policy(activation=activation)
    path = tmp_path / "policy.onnx"
    written = write_onnx(trained, NUM_OBS, path, METADATA)
    assert written.difference <= 1e-5
    run = session(path).run
    obs = observations(100)
    wanted = mean(trained, obs)
    for batch in (1, 7):
        for start in range(0, 100 - batch, batch):
            rows = slice(start, start + batch)
            (actions,) = run(["actions"], {"obs": obs[rows].numpy()})
            np.testing.assert_allclose(actions, wanted[rows], atol=1e-5)


def test_the_normaliser_is_in_the_file():
    """It is a part of the network: there is no way to leave it out."""
    trained = policy(hidden_dims=(1,), activation="relu")
    normalizer = trained.actor.obs_normalizer
    normalizer._mean[:] = 6.5
    normalizer._std[:] = 5.722762
    with torch.no_grad():
        for parameter in trained.actor.mlp.parameters():
            parameter.zero_()
        trained.actor.mlp[0].weight[0, 0] = 1.0
        trained.actor.mlp[2].weight[:, 0] = 1.0
    actions = export.Decision(trained)(torch.full((1, NUM_OBS), 12.0))[0]
    assert actions.tolist()[0] == pytest.approx([0.959398] * 3, abs=1e-6)


def test_one_file_is_all_there_is(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    there.mkdir()
    trained = policy(hidden_dims=(512, 256))  # more than half a megabyte
    write_onnx(trained, NUM_OBS, here / "policy.onnx", METADATA)
    assert [path.name for path in here.iterdir()] == ["policy.onnx"]
    moved = Path(shutil.move(here / "policy.onnx", there))
    here.rmdir()
    obs = observations(3)
    (actions,) = session(moved).run(["actions"], {"obs": obs.numpy()})
    np.testing.assert_allclose(actions, mean(trained, obs), atol=1e-5)


def test_metadata_are_read_back_as_they_were_given(tmp_path):
    path = tmp_path / "policy.onnx"
    write_onnx(policy(), NUM_OBS, path, METADATA)
    kept = session(path).get_modelmeta().custom_metadata_map
    assert kept["run_id"] == "a run"
    assert json.loads(kept["joint_names"]) == ["left", "right"]
    assert json.loads(kept["control_dt"]) == 0.02
    extra = {"metadata.json": ""}
    write_jit(policy(), NUM_OBS, tmp_path / "policy.pt", METADATA)
    torch.jit.load(str(tmp_path / "policy.pt"), _extra_files=extra)
    assert json.loads(extra["metadata.json"]) == METADATA


@pytest.mark.parametrize(
    "settings",
    [{}, {"clip_actions": 0.5}, {"state_dependent_std": True}, {"obs_normalization": False}],
)
def test_every_kind_of_policy_is_written_in_both_formats(tmp_path, settings):
    trained = policy(**settings)
    onnx_file = write_onnx(trained, NUM_OBS, tmp_path / "policy.onnx", METADATA)
    jit_file = write_jit(trained, NUM_OBS, tmp_path / "policy.pt", METADATA)
    assert onnx_file.inputs == jit_file.inputs == (("obs", ("batch", NUM_OBS)),)
    assert onnx_file.outputs == jit_file.outputs == (("actions", ("batch", NUM_ACTIONS)),)
    obs = observations(7)
    scripted = torch.jit.load(str(jit_file.path))
    np.testing.assert_allclose(scripted(obs).detach(), mean(trained, obs), atol=1e-5)
    if (limit := settings.get("clip_actions")) is not None:
        (actions,) = session(onnx_file.path).run(None, {"obs": 10 * obs.numpy()})
        assert np.abs(actions).max() == pytest.approx(limit)


@pytest.mark.parametrize(("kind", "layers"), [("gru", 1), ("lstm", 1), ("lstm", 2)])
def test_a_memorys_state_goes_in_and_comes_out(tmp_path, kind, layers):
    trained = policy(rnn_type=kind, rnn_hidden_dim=6, rnn_num_layers=layers)
    written = write_onnx(trained, NUM_OBS, tmp_path / "policy.onnx", METADATA)
    names = ["h", "c"][: 1 if kind == "gru" else 2]
    assert [name for name, _ in written.inputs] == ["obs", *(f"{name}_in" for name in names)]
    assert [name for name, _ in written.outputs] == ["actions", *(f"{name}_out" for name in names)]
    assert dict(written.inputs)["h_in"] == (layers, "batch", 6)
    run = session(written.path).run
    for batch in (1, 4):
        zero = {f"{name}_in": np.zeros((layers, batch, 6), np.float32) for name in names}
        state, hidden = dict(zero), trained.actor.initial_hidden(batch)
        for step, obs in enumerate(observations(20 * batch).view(20, batch, NUM_OBS)):
            actions, *following = run(None, {"obs": obs.numpy(), **state})
            with torch.no_grad():
                wanted, hidden = trained.actor.decide(obs, hidden)
            np.testing.assert_allclose(actions, wanted, atol=1e-5, err_msg=f"step {step}")
            state = {f"{name}_in": out for name, out in zip(names, following, strict=True)}
        # zeros are a reset: the first observation has the first answer again
        first = observations(20 * batch)[:batch]
        again, *_ = run(None, {"obs": first.numpy(), **zero})
        with torch.no_grad():
            fresh, _ = trained.actor.decide(first, trained.actor.initial_hidden(batch))
        np.testing.assert_allclose(again, fresh, atol=1e-5)


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_a_script_keeps_its_memory_and_forgets_on_reset(tmp_path, kind):
    trained = policy(rnn_type=kind, rnn_hidden_dim=6)
    scripted = torch.jit.load(str(write_jit(trained, NUM_OBS, tmp_path / "p.pt", {}).path))
    hidden = trained.actor.initial_hidden(2)
    sequence = observations(40).view(20, 2, NUM_OBS)
    first = scripted(sequence[0])
    scripted.reset()
    with torch.no_grad():
        for obs in sequence:
            wanted, hidden = trained.actor.decide(obs, hidden)
            torch.testing.assert_close(scripted(obs), wanted, rtol=0, atol=1e-5)
        scripted.reset()
        torch.testing.assert_close(scripted(sequence[0]), first)
        assert scripted(sequence[0, :1]).shape == (1, NUM_ACTIONS)  # another number of worlds


def test_a_file_that_acts_otherwise_is_refused_and_leaves_nothing_behind(tmp_path, monkeypatch):
    def wrong(path, model, outputs):
        return lambda obs, hidden: (torch.zeros(len(obs), NUM_ACTIONS), hidden), "nothing"

    monkeypatch.setattr(export, "_run_onnx", wrong)
    with pytest.raises(ExportError, match="differ from the policy's by"):
        write_onnx(policy(), NUM_OBS, tmp_path / "policy.onnx", METADATA)
    assert list(tmp_path.iterdir()) == []


def test_without_onnxruntime_the_file_is_checked_by_onnx_itself(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    trained = policy(rnn_type="gru", rnn_hidden_dim=4)
    written = write_onnx(trained, NUM_OBS, tmp_path / "policy.onnx", METADATA)
    assert written.checked_with == "onnx's reference evaluator"
    assert written.difference <= 1e-5
    onnx.checker.check_model(onnx.load(str(written.path)), full_check=True)
