"""Symmetry and random network distillation in whole iterations, over points on a line."""

import pytest
import torch

from tests.trainer.test_symmetry import FlippedToyEnv
from trainer.config import TrainerConfig
from trainer.guard import NonFiniteError
from trainer.keeping import copied
from trainer.loop import Trainer

SMALL = {
    "seed": 5,
    "num_steps_per_env": 6,
    "num_mini_batches": 2,
    "num_learning_epochs": 2,
    "actor": {"hidden_dims": [8]},
    "critic": {"hidden_dims": [8]},
}
RND = {
    "weight": 3.0,
    "num_outputs": 2,
    "state_normalization": True,
    "reward_normalization": True,
    "weight_schedule": {"mode": "linear", "initial_step": 2, "final_step": 20, "final_value": 0.1},
}
BOTH = {"use_data_augmentation": True, "use_mirror_loss": True, "mirror_loss_coeff": 0.5}


def make(**changes):
    env = FlippedToyEnv(num_envs=6, max_episode_length=5)
    return Trainer(env, TrainerConfig(**{**SMALL, **changes}))


def weights(trainer):
    return {**trainer.actor.state_dict(), **trainer.critic.state_dict()}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


def run(trainer, iterations=3):
    for _ in range(iterations):
        trainer.iterate()
    return trainer


@pytest.mark.parametrize("extension", [{"rnd": {}}, {"symmetry": {}}])
def test_an_extension_without_weight_only_tells(extension):
    plain, told = run(make()), run(make(**extension))
    assert_same(weights(plain), weights(told))
    (name,) = extension
    assert told.metrics()[f"Loss/{name}"] > 0
    assert f"Loss/{name}" not in plain.metrics()


@pytest.mark.parametrize(
    "symmetry",
    [
        {"use_data_augmentation": True},
        {"use_mirror_loss": True, "mirror_loss_coeff": 1.0},
        BOTH,
    ],
)
def test_what_symmetry_asks_for_changes_what_is_learnt(symmetry):
    plain, mirrored = run(make()), run(make(symmetry=symmetry))
    assert not torch.equal(plain.actor.mlp[0].weight, mirrored.actor.mlp[0].weight)


def test_each_row_is_paid_for_the_state_it_led_to():
    plain, paid = make(), make(rnd={"weight": 3.0, "num_outputs": 2})
    rnd, states, env_observe = paid.rnd, [], paid.env.observe

    def observed():
        states.append(env_observe()["policy"])
        return {"policy": states[-1]}

    paid.env.observe = observed
    networks = copied(rnd.state_dict())
    plain.iterate()
    paid.iterate()
    rnd.load_state_dict(networks)
    states = torch.stack(states)
    assert states.shape == (6, 6, 2)  # the first look was before; one a step
    with torch.no_grad():
        novelty = (rnd.target(states) - rnd.predictor(states)).norm(dim=-1, keepdim=True)
    difference = paid.rollout.rewards - plain.rollout.rewards
    torch.testing.assert_close(difference, 3.0 * 0.1 * novelty, atol=1e-5, rtol=1e-5)


def test_the_episodes_reward_is_what_env_and_novelty_paid():
    plain, paid = run(make()), run(make(rnd=RND))
    metrics = paid.metrics()
    assert metrics["Rnd/mean_intrinsic_reward"] > 0
    assert metrics["Train/mean_reward"] == pytest.approx(
        metrics["Rnd/mean_extrinsic_reward"] + metrics["Rnd/mean_intrinsic_reward"]
    )
    steps = 3 * 6
    assert metrics["Rnd/weight"] == pytest.approx(0.3 + (0.1 - 0.3) * (steps - 2) / (20 - 2))
    assert not {tag for tag in plain.metrics() if tag.startswith("Rnd/")}
    assert paid.rnd.state_normalizer.count.item() == steps * 6


def test_rnd_reads_a_set_of_its_own():
    with pytest.raises(ValueError, match=r"trainer\.obs_groups\.rnd_state: the env has no"):
        make(rnd=RND, obs_groups={"rnd_state": ["smell"]})


def test_a_state_goes_on_bit_for_bit():
    config = {"rnd": RND, "symmetry": BOTH}
    whole = run(make(**config), 2)
    state = copied(whole.state_dict())
    again = make(**config)
    again.load_state_dict(state)
    run(whole, 2)
    run(again, 2)
    assert_same(weights(whole), weights(again))
    assert_same(whole.rnd.state_dict(), again.rnd.state_dict())
    timed = ("Perf/",)
    ours, theirs = (
        {tag: value for tag, value in trainer.metrics().items() if not tag.startswith(timed)}
        for trainer in (whole, again)
    )
    assert ours == theirs


def test_where_the_worlds_begin_anew_the_predictor_goes_on():
    whole = run(make(rnd=RND), 2)
    state = {
        key: value
        for key, value in copied(whole.state_dict()).items()
        if key not in ("generator", "env", "obs", "episodes", "intrinsic")
    }
    again = make(rnd=RND)
    again.load_state_dict(state)
    assert_same(whole.rnd.state_dict(), again.rnd.state_dict())
    assert again.rnd.num_steps == 12
    run(again, 1)


def test_a_bad_number_in_the_predictor_is_named():
    trainer = make(rnd=RND)
    trainer.rnd.target[0].weight.data.fill_(float("nan"))
    with pytest.raises(NonFiniteError, match="rewards"):
        trainer.iterate()
