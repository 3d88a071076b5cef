"""Sets of observation groups: which a network reads, and how they come together."""

import pytest
import torch

from tests.trainer.toy_env import ToyEnv
from trainer.config import ActorConfig, CriticConfig, ObsGroups, TrainerConfig
from trainer.loop import Trainer
from trainer.normalizer import EmpiricalNormalizer
from trainer.observation_sets import ObservationSet, resolve_set

WIDTHS = {"policy": 2, "privileged": 3}


@pytest.mark.parametrize(
    ("given", "known", "expected"),
    [
        ({}, ["policy"], ("policy",)),
        ({}, ["policy", "critic"], ("critic",)),
        ({"actor": ("policy",)}, ["policy", "critic"], ("critic",)),
        ({"critic": ("policy", "privileged")}, WIDTHS, ("policy", "privileged")),
        ({"critic": ("privileged", "policy")}, WIDTHS, ("privileged", "policy")),
        ({"critic": ("policy",)}, ["policy", "critic"], ("policy",)),
    ],
)
def test_a_set_is_as_given_else_the_group_of_its_name_else_policy(given, known, expected):
    assert resolve_set(ObsGroups(**given), "critic", known).groups == expected


def test_a_group_that_the_env_lacks_is_named_with_its_key():
    with pytest.raises(ValueError, match=r"obs_groups\.critic: .* group \"privlieged\"; allowed: "):
        resolve_set(ObsGroups(critic=("privlieged",)), "critic", WIDTHS)
    with pytest.raises(ValueError, match=r'critic reads .* "critic" or "policy".* allowed: camera'):
        resolve_set(ObsGroups(), "critic", ["camera"])


def test_an_empty_set_is_refused():
    with pytest.raises(ValueError, match="critic"):
        ObsGroups(critic=())


def test_groups_are_joined_in_order_and_one_alone_is_not_copied():
    groups = {"policy": torch.ones(4, 2), "privileged": torch.zeros(4, 3)}
    joined = ObservationSet(("privileged", "policy"))
    assert joined.width(WIDTHS) == 5
    assert joined(groups).tolist() == [[0, 0, 0, 1, 1]] * 4
    assert ObservationSet(("policy",))(groups) is groups["policy"]


def test_statistics_of_parts_are_those_of_the_joined_rows():
    torch.manual_seed(0)
    parts = torch.randn(6, 4, 2), torch.randn(6, 4, 3) * 3 + 1
    apart, joined = EmpiricalNormalizer(5), EmpiricalNormalizer(5)
    for _ in range(2):
        apart.update(*parts)
        joined.update(torch.cat(parts, dim=-1))
    for name, buffer in apart.named_buffers():
        assert torch.equal(buffer, joined.get_buffer(name)), name


class TellingEnv(ToyEnv):
    """The toy with what its noise hides, and a group that nobody reads."""

    def observe(self):
        return {
            **super().observe(),
            "privileged": torch.stack((self.x, self.x.square(), self.x.abs()), dim=1),
            "unread": torch.zeros(self.num_envs, 7),
        }


def trainer_of(**obs_groups):
    config = TrainerConfig(
        seed=1,
        num_steps_per_env=4,
        num_mini_batches=2,
        num_learning_epochs=2,
        obs_groups=ObsGroups(**obs_groups),
        actor=ActorConfig(hidden_dims=(4,), obs_normalization=True),
        critic=CriticConfig(hidden_dims=(4,), obs_normalization=True),
    )
    return Trainer(TellingEnv(), config)


def test_an_asymmetric_critic_has_its_own_width_and_statistics():
    trainer = trainer_of(critic=("policy", "privileged"))
    assert trainer.actor.mlp[0].in_features == 2
    assert trainer.critic.mlp[0].in_features == 5
    trainer.iterate()
    stored = trainer.rollout.observations
    assert {group: tensor.shape[-1] for group, tensor in stored.items()} == WIDTHS
    expected = torch.cat((stored["policy"], stored["privileged"]), -1).flatten(0, 1).mean(0)
    torch.testing.assert_close(trainer.critic.obs_normalizer._mean[0], expected)
    torch.testing.assert_close(trainer.actor.obs_normalizer._mean[0], expected[:2])
    assert trainer.results[0].kl == pytest.approx(0.0, abs=1e-6)


def test_a_group_is_stored_once_however_many_read_it():
    trainer = trainer_of(actor=("policy",), critic=("policy",))
    assert set(trainer.rollout.observations) == {"policy"}


def test_two_trainers_with_an_asymmetric_critic_are_alike_bit_for_bit():
    one, other = (trainer_of(critic=("privileged",)) for _ in range(2))
    for trainer in (one, other):
        trainer.iterate()
        trainer.iterate()
    for name, tensor in one.critic.state_dict().items():
        assert torch.equal(tensor, other.critic.state_dict()[name])
