"""All of the learner keeps to its worlds' device, shown without a GPU (D10)."""

import pytest
import torch
from torch import nn

from tests.sim.pretend_gpu import GPU, PretendGenerator, PretendGpu
from tests.trainer.toy_env import ToyEnv
from trainer.config import ActorConfig, CriticConfig, RndConfig, SymmetryConfig, TrainerConfig
from trainer.loop import Trainer

NETWORK = {"hidden_dims": (8,), "obs_normalization": True}
CONFIG = TrainerConfig(
    seed=1,
    num_steps_per_env=6,
    num_mini_batches=2,
    num_learning_epochs=2,
    actor=ActorConfig(**NETWORK),
    critic=CriticConfig(**NETWORK),
)
MEMORY = {"rnn_type": "lstm", "rnn_hidden_dim": 4}


class Flipped:
    def observations(self, observations):
        return {group: -rows for group, rows in observations.items()}

    def actions(self, actions):
        return -actions


class FarEnv(ToyEnv):
    """The toy's worlds on the pretended GPU, all of them."""

    def __init__(self):
        super().__init__(max_episode_length=5)
        self.device = GPU
        for name in ("x", "episode_length"):
            PretendGpu.there(getattr(self, name))

    def _draw(self):
        drawn = super()._draw()
        PretendGpu.there(drawn)
        return drawn

    def mirror(self):
        return Flipped()

    def load_state_dict(self, state):
        super().load_state_dict({**state, "x": state["x"].to(GPU)})


@pytest.fixture
def gpu(monkeypatch):
    def moved(module, device):
        if device == GPU:
            for tensor in (*module.parameters(), *module.buffers()):
                PretendGpu.there(tensor)
        return module

    monkeypatch.setattr(nn.Module, "to", moved)
    monkeypatch.setattr(torch, "Generator", PretendGenerator)
    with PretendGpu():
        yield


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"normalize_advantage_per_mini_batch": True, "clip_actions": 0.5, "optimizer": "rmsprop"},
        {"actor": ActorConfig(**NETWORK, **MEMORY), "critic": CriticConfig(**NETWORK, **MEMORY)},
        {"actor": ActorConfig(**NETWORK, state_dependent_std=True), "schedule": "fixed"},
        {"rnd": RndConfig(weight=1.0, state_normalization=True, reward_normalization=True)},
        {"symmetry": SymmetryConfig(use_data_augmentation=True, use_mirror_loss=True)},
    ],
    ids=["plain", "variants", "memory", "state-dependent", "rnd", "symmetry"],
)
def test_every_operation_of_an_iteration_keeps_to_the_worlds_device(gpu, changes):
    trainer = Trainer(FarEnv(), CONFIG.model_copy(update=changes))
    for _ in range(2):
        trainer.iterate()
        trainer.metrics()
    # as a checkpoint is read: onto the CPU
    again = Trainer(FarEnv(), CONFIG.model_copy(update=changes))
    again.load_state_dict(on_the_cpu(trainer.state_dict()))
    moments = again.learner.state_dict()["state"][0]
    assert all(tensor.device == GPU for tensor in moments.values() if tensor.ndim)
    again.iterate()
    again.metrics()


def on_the_cpu(state):
    if isinstance(state, dict):
        return {key: on_the_cpu(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return [on_the_cpu(entry) for entry in state]
    return state.cpu() if isinstance(state, torch.Tensor) else state
