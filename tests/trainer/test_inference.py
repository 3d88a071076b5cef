import copy
from pathlib import Path

import pytest
import torch

from tests.trainer.toy_env import ToyEnv
from trainer.checkpoint import CheckpointError
from trainer.config import ActorConfig, TrainerConfig
from trainer.inference import load_policy
from trainer.loop import Trainer

PATH = Path("run/checkpoints/model_7.pt")


def config(**actor):
    settings = {"hidden_dims": (8,), "obs_normalization": True, **actor}
    return TrainerConfig(
        seed=0, num_mini_batches=1, num_steps_per_env=4, actor=ActorConfig(**settings)
    )


def state_of(settings):
    trainer = Trainer(ToyEnv(), settings)
    trainer.iterate()
    return copy.deepcopy(trainer.state_dict())


def test_the_policy_is_the_mean_behind_the_normaliser():
    settings = config(hidden_dims=(1,), activation="relu")
    state = state_of(settings)
    weights = state["actor"]
    weights["obs_normalizer._mean"][:] = 6.5
    weights["obs_normalizer._std"][:] = 5.722762
    for name, tensor in weights.items():
        if name.startswith("mlp"):
            tensor.zero_()
    weights["mlp.0.weight"][0, 0] = 1.0
    weights["mlp.2.weight"][0, 0] = 1.0
    policy = load_policy(settings, ToyEnv(), state, PATH)
    action = policy({"policy": torch.tensor([[12.0, 0.0]])})
    assert action.item() == pytest.approx(0.959398, abs=1e-6)  # (12 - 6.5) / (5.722762 + 0.01)


def test_a_loaded_policy_acts_as_the_trained_one():
    settings = config()
    trainer = Trainer(ToyEnv(), settings)
    for _ in range(3):
        trainer.iterate()
    policy = load_policy(settings, ToyEnv(), trainer.state_dict(), PATH)
    obs = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        wanted = trainer.actor.mean(obs)
    torch.testing.assert_close(policy({"policy": obs}), wanted, rtol=0, atol=1e-6)


def test_actions_are_limited_as_in_training():
    settings = config().model_copy(update={"clip_actions": 0.01})
    policy = load_policy(settings, ToyEnv(), state_of(settings), PATH)
    action = policy({"policy": 100 * torch.ones(1, 2)})
    assert action.abs().item() <= 0.01


def test_a_checkpoint_without_its_statistics_is_refused_with_their_names():
    settings = config()
    state = state_of(settings)
    del state["actor"]["obs_normalizer._mean"]
    with pytest.raises(CheckpointError, match=r"model_7.pt: .* it lacks obs_normalizer._mean"):
        load_policy(settings, ToyEnv(), state, PATH)


def test_a_checkpoint_of_other_sizes_is_refused_with_both():
    state = state_of(config(hidden_dims=(6,)))
    with pytest.raises(CheckpointError, match=r"mlp.0.weight is \[6, 2\], not \[8, 2\]"):
        load_policy(config(), ToyEnv(), state, PATH)
    with pytest.raises(CheckpointError, match="holds no policy"):
        load_policy(config(), ToyEnv(), {}, PATH)


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_a_memory_is_carried_along_and_forgotten_where_an_episode_ends(kind):
    settings = config(rnn_type=kind, rnn_hidden_dim=4)
    policy = load_policy(settings, ToyEnv(), state_of(settings), PATH)
    obs = {"policy": torch.ones(2, 2)}
    first = policy(obs)
    second = policy(obs)
    assert not torch.equal(first, second)
    policy.reset(torch.tensor([True, False]))
    third = policy(obs)
    torch.testing.assert_close(third[0], first[0])
    assert not torch.equal(third[1], first[1])
