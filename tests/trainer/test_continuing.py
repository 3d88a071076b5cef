"""What is missing in a state, or does not fit, is named; what new worlds can take on, they do."""

import pytest
import torch

from tests.trainer.toy_env import ToyEnv
from trainer import checkpoint
from trainer.checkpoint import CheckpointError
from trainer.config import ActorConfig, CriticConfig, RndConfig, TrainerConfig
from trainer.loop import Trainer

NETWORK = {"hidden_dims": (8,), "rnn_type": "gru", "rnn_hidden_dim": 4}
CONFIG = TrainerConfig(
    seed=7,
    num_steps_per_env=4,
    num_mini_batches=2,
    num_learning_epochs=1,
    actor=ActorConfig(**NETWORK),
    critic=CriticConfig(**NETWORK),
    rnd=RndConfig(weight=1.0),
)


@pytest.fixture
def state(tmp_path):
    """The state of a trainer after an iteration, as a checkpoint holds it."""
    trainer = Trainer(ToyEnv(), CONFIG)
    trainer.iterate()
    checkpoint.save(tmp_path / "model_1.pt", trainer.state_dict())
    return checkpoint.load(tmp_path / "model_1.pt")


@pytest.mark.parametrize("part", ["actor", "critic", "optimizer", "obs", "episodes", "intrinsic"])
def test_a_part_that_is_missing_is_named(state, part):
    del state[part]
    with pytest.raises(CheckpointError, match=f"checkpoint's {part} does not fit: it lacks"):
        Trainer(ToyEnv(), CONFIG).load_state_dict(state)


@pytest.mark.parametrize(
    ("part", "wrong", "said"),
    [
        ("actor", 3, "to be dict-like"),
        ("critic", {"mlp.0.weight": torch.zeros(3, 3)}, "Missing key"),
        ("optimizer", {}, "it lacks 'param_groups'"),
        ("optimizer", 3, "'int' object"),
        ("rnd", {"networks": {}}, "Missing key"),
        ("generator", "x", "'str' object has no attribute 'shape'"),
        ("env", {"another": 1}, "it lacks 'x'"),
        ("env", 3, "'int' object"),
        ("obs", {"another": torch.zeros(4, 2)}, r"it is {'another': \[4, 2\]}, not {'policy': "),
        ("obs", {"policy": torch.zeros(3, 2)}, r"it is {'policy': \[3, 2\]}, not {'policy': "),
        ("actor_hidden", [], r"it is {}, not {0: \[1, 4, 4\]}"),
        ("critic_hidden", [torch.zeros(1, 3, 4)], r"it is {0: \[1, 3, 4\]}, not "),
        ("episodes", {}, "it lacks 'reward'"),
        ("edits", 3, "'int' object"),
    ],
)
def test_a_part_that_does_not_fit_is_named_in_a_line(state, part, wrong, said):
    with pytest.raises(
        CheckpointError, match=f"checkpoint's {part} does not fit: .*{said}"
    ) as told:
        Trainer(ToyEnv(), CONFIG).load_state_dict({**state, part: wrong})
    assert "\n" not in str(told.value)


def test_averages_that_one_weight_lacks_are_missed(state):
    del state["optimizer"]["state"][2]
    with pytest.raises(CheckpointError, match=r"optimizer does not fit: .* lack those of .* 2$"):
        Trainer(ToyEnv(), CONFIG).load_state_dict(state)


class Harder(ToyEnv):
    """Worlds that can be told how hard they were."""

    told = None

    def load_progress(self, state):
        self.told = state
        self.x = self._draw() + 5.0


@pytest.mark.parametrize("case", ["another device", "another number of ranks", "a lost rank"])
def test_worlds_that_begin_anew_are_as_hard_as_they_were(state, case):
    before = state["env"]
    if case == "another device":
        state["generator"] = torch.zeros(16, dtype=torch.uint8)
    elif case == "another number of ranks":
        state = checkpoint.for_rank(state, 1, 2)
    else:
        state = checkpoint.for_rank({**state, "world_size": 2, "other_ranks": [None]}, 1, 2)
    trainer = Trainer(Harder(), CONFIG)
    trainer.load_state_dict(state)
    assert trainer.env.told == before
    assert bool((trainer.obs["policy"][:, 0] > 3.0).all())  # of the worlds as they are now
    trainer.iterate()
