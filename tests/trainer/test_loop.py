"""What the loop makes of its stages: logs of the env steps, and statistics that stand still."""

from itertools import pairwise

import pytest
import torch

from tests.trainer.toy_env import ToyEnv
from trainer.config import ActorConfig, CriticConfig, TrainerConfig
from trainer.guard import NonFiniteError
from trainer.loop import Trainer, Unwatched
from trainer.stages import Stage


class TellingEnv(ToyEnv):
    """Logs a mean and counts happenings on every other step."""

    steps = 0

    def step(self, actions):
        self.steps += 1
        feedback = super().step(actions)
        if self.steps % 2:
            return feedback._replace(log={"level": float(self.steps)}, counts={"promotions": 2})
        return feedback._replace(log={}, counts={"promotions": torch.tensor(3)})


def test_logs_are_averaged_and_counts_are_added_up_over_an_iteration():
    config = TrainerConfig(
        seed=1,
        num_steps_per_env=4,
        num_mini_batches=1,
        num_learning_epochs=1,
        actor=ActorConfig(hidden_dims=(4,)),
        critic=CriticConfig(hidden_dims=(4,)),
    )
    trainer = Trainer(TellingEnv(), config)
    trainer.iterate()
    metrics = trainer.metrics()
    assert metrics["level"] == pytest.approx((1 + 3) / 2)
    assert metrics["promotions"] == 2 + 3 + 2 + 3
    trainer.iterate()
    metrics = trainer.metrics()
    assert metrics["level"] == pytest.approx((5 + 7) / 2)
    assert metrics["promotions"] == 10


def test_an_end_that_is_both_a_fall_and_a_time_out_is_stored_as_a_fall():
    """Worlds of other programs may say both: no bootstrap then, and the episode is over."""

    class Both(ToyEnv):
        def step(self, actions):
            feedback = super().step(actions)
            ends = torch.tensor([True, True, False, False])
            return feedback._replace(terminated=ends, time_outs=ends)

    config = TrainerConfig(
        seed=1,
        num_steps_per_env=2,
        num_mini_batches=1,
        gamma=0.5,
        actor=ActorConfig(hidden_dims=(4,)),
        critic=CriticConfig(hidden_dims=(4,)),
    )
    trainer = Trainer(Both(), config)
    for function in (trainer.observe, trainer.act_step, trainer.store):
        function()
    assert (trainer.values[:2].abs() > 1e-3).all()
    assert torch.equal(trainer.rollout.rewards[0, :, 0], trainer.feedback.reward)
    assert trainer.rollout.dones[0, :, 0].tolist() == [True, True, False, False]


class BoundaryWatcher(Unwatched):
    """Keeps the actor's statistics as they are behind every stage."""

    def __init__(self):
        self.trainer = None
        self.seen = []

    def leaving(self, position, *, phase_ends):
        statistics = {
            name: buffer.clone()
            for network in (self.trainer.actor, self.trainer.critic)
            for name, buffer in network.obs_normalizer.named_buffers(prefix=type(network).__name__)
        }
        self.seen.append((position.stage, statistics))


def test_statistics_move_in_fresh_alone_so_the_first_ratio_of_every_iteration_is_one():
    config = TrainerConfig(
        seed=1,
        num_steps_per_env=6,
        num_mini_batches=2,
        num_learning_epochs=2,
        actor=ActorConfig(hidden_dims=(4,), obs_normalization=True),
        critic=CriticConfig(hidden_dims=(4,), obs_normalization=True),
    )
    watcher = BoundaryWatcher()
    trainer = watcher.trainer = Trainer(ToyEnv(), config, watcher)
    for _ in range(3):
        trainer.iterate()
        first = trainer.results[0]
        torch.testing.assert_close(first.ratio, torch.ones(12), atol=1e-6, rtol=0)
        assert first.kl == pytest.approx(0.0, abs=1e-6)
        assert first.clip_fraction == 0.0
    moved = [
        stage
        for (_, before), (stage, after) in pairwise(watcher.seen)
        if any(not torch.equal(before[name], after[name]) for name in after)
    ]
    assert moved == [Stage.FRESH] * 3


def test_observations_whose_squares_are_infinite_end_the_run_before_they_are_all_that_is_seen():
    """Their variance would be infinite, and every observation 0 behind it, for good."""

    class Huge(ToyEnv):
        def observe(self):
            seen = super().observe()["policy"]
            return {"actor": seen, "critic": seen * torch.tensor([1.0, 1e25])}

    config = TrainerConfig(
        seed=1,
        num_steps_per_env=4,
        num_mini_batches=2,
        num_learning_epochs=1,
        value_loss_coef=0.0,
        actor=ActorConfig(hidden_dims=(4,)),
        critic=CriticConfig(hidden_dims=(4,), obs_normalization=True),
    )
    trainer = Trainer(Huge(), config)
    with torch.no_grad():
        trainer.critic.mlp[0].weight[:, 1] = 0.0  # nothing else is to go wrong
    with pytest.raises(NonFiniteError, match=r"^variance of critic\.obs_normalizer: 1 of 2 non-f"):
        trainer.iterate()
    assert trainer.completed_iterations == 0


def test_the_first_mini_batch_alone_of_every_update_is_told_that_nothing_has_moved(monkeypatch):
    config = TrainerConfig(
        seed=1,
        num_steps_per_env=6,
        num_mini_batches=2,
        num_learning_epochs=2,
        actor=ActorConfig(hidden_dims=(4,)),
        critic=CriticConfig(hidden_dims=(4,)),
    )
    trainer = Trainer(ToyEnv(), config)
    told = []
    optimize = trainer.learner.optimize

    def watched(batch, *, unmoved=False):
        told.append(unmoved)
        return optimize(batch, unmoved=unmoved)

    monkeypatch.setattr(trainer.learner, "optimize", watched)
    trainer.iterate()
    trainer.iterate()
    assert told == [True, False, False, False] * 2


def ages(init_at_random_ep_len, seed=1, limit=1000):
    config = TrainerConfig(seed=seed, init_at_random_ep_len=init_at_random_ep_len)
    return Trainer(ToyEnv(num_envs=256, max_episode_length=limit), config)


def test_worlds_start_at_ages_spread_over_the_time_limit_or_all_at_zero():
    spread = ages(True).env.episode_length
    assert spread.min() >= 0
    assert spread.max() < 1000
    assert (spread // 100).unique().numel() == 10  # some in every tenth
    assert torch.equal(ages(True).env.episode_length, spread)
    assert not ages(False).env.episode_length.any()
    # an episode of 4 steps may have made 0 to 3: no world starts behind its limit
    assert ages(True, limit=4).env.episode_length.unique().tolist() == [0, 1, 2, 3]


def test_ages_are_drawn_once_and_not_again_where_a_run_continues():
    first, second = ages(True), ages(True, seed=2)
    assert not torch.equal(first.env.episode_length, second.env.episode_length)
    second.load_state_dict(first.state_dict())
    assert torch.equal(first.env.episode_length, second.env.episode_length)


@pytest.mark.parametrize(
    "noise",
    [{}, {"std_type": "log"}, {"learn_std": False}, {"state_dependent_std": True}],
    ids=["scalar", "log", "fixed", "state-dependent"],
)
@pytest.mark.parametrize("rnn_type", [None, "gru"])
def test_no_graph_outlives_its_step(noise, rnn_type):
    """A tensor that is kept with its history would keep all iterations before it alive."""
    memory = {"rnn_type": rnn_type, "rnn_hidden_dim": 4} if rnn_type else {}
    config = TrainerConfig(
        seed=1,
        num_steps_per_env=4,
        num_mini_batches=1,
        num_learning_epochs=1,
        actor=ActorConfig(hidden_dims=(4,), **noise, **memory),
        critic=CriticConfig(hidden_dims=(4,), **memory),
    )
    trainer = Trainer(ToyEnv(), config)
    for _ in range(2):
        trainer.iterate()
    kept = _tensors(vars(trainer)) + _tensors(vars(trainer.rollout))
    kept += [tensor for result in trainer.results for tensor in _tensors(result._asdict())]
    assert len(kept) > 10
    assert not [tensor for tensor in kept if tensor.grad_fn is not None]


def _tensors(fields):
    """All tensors in fields, and in the tuples and dicts there."""
    found = []
    for name, value in fields.items():
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, dict):
            found += _tensors({f"{name}.{key}": entry for key, entry in value.items()})
        elif isinstance(value, tuple):
            found += _tensors({f"{name}[{index}]": entry for index, entry in enumerate(value)})
    return found
