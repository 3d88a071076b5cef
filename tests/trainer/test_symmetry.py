"""Augmenting by the mirror image, and the mirror loss."""

import pytest
import torch

from tests.trainer.toy_env import ToyEnv
from trainer.config import SymmetryConfig, TrainerConfig
from trainer.rollout import Samples
from trainer.symmetry import Symmetry, make_symmetry

M = 3


class Flip:
    """A mirror in which the first observation and the action change sign, the others do not."""

    def observations(self, observations):
        sign = torch.tensor([-1.0, 1.0])
        return {group: rows * sign for group, rows in observations.items()}

    def actions(self, actions):
        return -actions


class FlippedToyEnv(ToyEnv):
    """Points on a line, which has no sides of its own."""

    def mirror(self):
        return Flip()


def batch():
    def rows(width, start):
        return torch.arange(M * width, dtype=torch.float32).view(M, width) + start

    observations = {"policy": rows(2, 1), "unread": rows(5, 0)}
    return Samples(observations, *(rows(1, start) for start in range(10, 80, 10)))


def test_below_the_samples_stands_their_mirror_image():
    samples = Symmetry(SymmetryConfig(use_data_augmentation=True), Flip()).augmented(
        batch(), ["policy"]
    )
    assert samples.observations.keys() == {"policy"}
    assert samples.observations["policy"].tolist() == [
        [1, 2], [3, 4], [5, 6], [-1, 2], [-3, 4], [-5, 6]
    ]  # fmt: skip
    assert samples.actions.flatten().tolist() == [10, 11, 12, -10, -11, -12]
    for name in ("values", "advantages", "returns", "log_probs"):
        old = getattr(batch(), name).flatten().tolist()
        assert getattr(samples, name).flatten().tolist() == old + old
    for name in ("means", "stds"):
        assert torch.equal(getattr(samples, name), getattr(batch(), name))


def test_without_augmentation_the_batch_is_itself():
    samples = batch()
    symmetry = Symmetry(SymmetryConfig(use_mirror_loss=True), Flip())
    assert symmetry.augmented(samples, ["policy"]) is samples
    mirrored = symmetry.mirrored_observations(samples, ["policy"])
    assert mirrored["policy"].tolist() == [[-1, 2], [-3, 4], [-5, 6]]


def test_with_augmentation_the_policy_has_been_asked_already():
    symmetry = Symmetry(SymmetryConfig(use_data_augmentation=True), Flip())
    assert symmetry.mirrored_observations(batch(), ["policy"]) is None


def test_the_mirror_loss_is_the_mean_square_of_what_differs_and_moves_one_side_alone():
    symmetry = Symmetry(SymmetryConfig(use_mirror_loss=True), Flip())
    means = torch.tensor([[1.0], [2.0]], requires_grad=True)
    mirrored = torch.tensor([[-1.5], [0.0]], requires_grad=True)
    loss = symmetry.loss(means, mirrored)
    assert loss.item() == (0.5**2 + 2.0**2) / 2
    loss.backward()
    assert means.grad is None
    assert mirrored.grad.flatten().tolist() == [-0.5, 2.0]


def test_nothing_is_made_where_nothing_is_asked():
    assert make_symmetry(None, ToyEnv()) is None


def test_an_env_without_a_mirror_is_refused():
    with pytest.raises(ValueError, match="this one has none"):
        make_symmetry(SymmetryConfig(), ToyEnv())


def test_a_memory_does_not_go_with_a_mirror():
    with pytest.raises(ValueError, match=r"critic\.rnn_type = 'gru'"):
        TrainerConfig(symmetry={}, critic={"rnn_type": "gru"})
