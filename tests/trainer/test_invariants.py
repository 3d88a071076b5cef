"""Each invariant holds in training as it is, and is found broken when it is broken on purpose."""

import pytest
import torch

from tests.trainer.stopped import different, small_trainer
from tests.trainer.toy_env import ToyEnv
from trainer import mini_batches, targets
from trainer.checker import INVARIANTS, InvariantChecker
from trainer.config import ActorConfig, CriticConfig
from trainer.fingerprints import fingerprint
from trainer.stages import Stage
from trainer.telemetry import Position
from trainer.trace import Verdict, worst

EVERY = 1e9  # a budget that every iteration's checks are within
BROKEN_FROM = 2  # index of the iteration in which the tampering begins, the third

NORMALISED = different(
    actor=ActorConfig(hidden_dims=(8,), obs_normalization=True),
    critic=CriticConfig(hidden_dims=(8,), obs_normalization=True),
)
CONFIGS = {
    "plain": different(),
    "normalisers": NORMALISED,
    "clamped actions": different(clip_actions=0.2),
    "normalised per mini-batch": different(normalize_advantage_per_mini_batch=True),
    "one mini-batch": different(num_mini_batches=1),
    "memory": different(
        actor=ActorConfig(hidden_dims=(8,), rnn_type="gru", rnn_hidden_dim=8),
        critic=CriticConfig(hidden_dims=(8,), rnn_type="lstm", rnn_hidden_dim=8),
    ),
}


def checked(tamper=None, iterations=4, config=CONFIGS["plain"], when=()):
    """Train and check; `tamper(trainer, position)` runs at the boundaries `when` that are due."""
    trainer = small_trainer(config)
    checker = InvariantChecker(trainer, EVERY)

    def hook(side):
        def run(position):
            due = position.iteration >= BROKEN_FROM
            if due and (side, position.stage) in when:
                tamper(trainer, position)

        return run

    trainer.watcher.entering_hooks += [hook("entering"), checker.entering]
    trainer.watcher.leaving_hooks += [hook("leaving"), checker.leaving]
    for _ in range(iterations):
        trainer.iterate()
    return checker


def broken(checker):
    """Names of what is broken, with the iterations named."""
    return {s.name: s.iteration for s in checker.states if s.verdict is Verdict.BROKEN}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_all_hold_in_training_as_it_is(config):
    checker = checked(config=config)
    assert broken(checker) == {}
    assert {state.verdict for state in checker.states} == {Verdict.HOLDS}
    assert all(state.iteration == 4 for state in checker.states)
    assert all(worst(checker.states, stage) is Verdict.HOLDS for stage in Stage)


def test_checking_changes_no_bit_of_the_training():
    alone, watched = small_trainer(NORMALISED), small_trainer(NORMALISED)
    checker = InvariantChecker(watched, EVERY)
    watched.watcher.entering_hooks.append(checker.entering)
    watched.watcher.leaving_hooks.append(checker.leaving)
    for _ in range(3):
        alone.iterate()
        watched.iterate()
    for one, other in zip(
        [*alone.actor.parameters(), *alone.critic.parameters(), alone.rollout.returns],
        [*watched.actor.parameters(), *watched.critic.parameters(), watched.rollout.returns],
        strict=True,
    ):
        assert torch.equal(one, other)


def nudge(parameter):
    with torch.no_grad():
        parameter.add_(1e-6)


def forget_a_world(trainer, at):
    trainer.obs["policy"] = trainer.obs["policy"][:-1]


def move_a_weight(trainer, at):
    nudge(trainer.actor.mlp[0].bias)


def move_the_critic(trainer, at):
    nudge(trainer.critic.mlp[2].weight)


def move_a_normaliser(trainer, at):
    trainer.actor.obs_normalizer.update(torch.full((4, 2), 3.0))


def store_the_clamped_action(trainer, at):
    trainer.rollout.actions[at.step - 1].clamp_(-0.1, 0.1)


def clamp_before_scoring(trainer, at):
    trainer.decision = trainer.decision._replace(action=trainer.decision.action.clamp(-0.1, 0.1))


def forget_the_bootstrap(trainer, at):
    trainer.rollout.rewards[at.step - 1].copy_(trainer.feedback.reward.view(-1, 1))


def forget_that_a_time_out_is_done(trainer, at):
    trainer.rollout.dones[at.step - 1].copy_(trainer.feedback.terminated.view(-1, 1))


def lose_a_row(trainer, at):
    if at.step == trainer.rollout.num_steps:
        trainer.rollout.cursor -= 1


def write_a_row_again(trainer, at):
    trainer.rollout.values[at.iteration % trainer.rollout.num_steps] += 1e-6


def let_credit_cross_the_ends(trainer, at):
    rollout = trainer.rollout
    rollout.dones, kept = torch.zeros_like(rollout.dones), rollout.dones
    targets.compute_returns(rollout, trainer.last_values, 0.99, 0.95)
    targets.normalize_advantages(rollout.advantages)
    rollout.dones = kept


def normalise_returns(trainer, at):
    targets.normalize_advantages(trainer.rollout.returns)


def draw_the_partition_anew(trainer, at):
    if (at.epoch, at.mini_batch) == (0, 1):
        generator = torch.Generator().manual_seed(9)
        trainer.mini_batches = mini_batches.sample(trainer.rollout, 2, generator)


def reorder_in_place(trainer, at):
    if (at.epoch, at.mini_batch) == (0, 1):
        order = trainer.mini_batches.permutation
        order.copy_(order.flip(0))


def read_a_sample_twice(trainer, at):
    order = trainer.mini_batches.permutation
    order[0] = order[1]


def change(field):
    def tamper(trainer, at):
        if at.epoch == 1:
            getattr(trainer.rollout, field).view(-1)[3] += 1e-5

    tamper.__name__ = f"change_{field}"
    return tamper


def shift_the_old_log_probs(trainer, at):
    trainer.rollout.log_probs += 0.1


def move_the_policy_before_the_update(trainer, at):
    if (at.epoch, at.mini_batch) == (0, 0):
        with torch.no_grad():
            trainer.actor.mlp[2].bias += 0.05


def end_an_epoch_early(trainer, at):
    trainer.results.pop()


def observe_again(trainer, at):
    if at.step == 0:
        trainer.obs = None


def reset_the_worlds(trainer, at):
    trainer.env.episode_length.add_(1)


def keep_the_cursor(trainer, at):
    trainer.rollout.cursor = 1


def make_the_rollout_anew(trainer, at):
    trainer.rollout.returns = trainer.rollout.returns.clone()


def replace_obs(trainer, at):
    trainer.obs["policy"] = trainer.obs["policy"] + 1


ENTERING, LEAVING = "entering", "leaving"
BREAKAGES = [
    ("weights fixed", move_a_weight, (ENTERING, Stage.ACT_STEP)),
    ("weights fixed", move_the_critic, (LEAVING, Stage.STORE)),
    ("weights fixed", move_a_normaliser, (ENTERING, Stage.ACT_STEP)),
    ("stored action is the sample", store_the_clamped_action, (LEAVING, Stage.STORE)),
    ("stored action is the sample", clamp_before_scoring, (LEAVING, Stage.ACT_STEP)),
    ("time-out adds gamma V_t", forget_the_bootstrap, (LEAVING, Stage.STORE)),
    ("time-out adds gamma V_t", forget_that_a_time_out_is_done, (LEAVING, Stage.STORE)),
    ("cursor counts rows", lose_a_row, (LEAVING, Stage.STORE)),
    ("rows stay as stored", write_a_row_again, (ENTERING, Stage.TARGETS)),
    ("a done cuts the chain", let_credit_cross_the_ends, (LEAVING, Stage.TARGETS)),
    ("returns never normalised", normalise_returns, (LEAVING, Stage.TARGETS)),
    ("same partition in all epochs", draw_the_partition_anew, (LEAVING, Stage.OPTIMIZE)),
    ("same partition in all epochs", reorder_in_place, (LEAVING, Stage.OPTIMIZE)),
    ("same partition in all epochs", read_a_sample_twice, (LEAVING, Stage.SAMPLE)),
    *(
        ("targets and old statistics frozen", change(field), (ENTERING, Stage.OPTIMIZE))
        for field in ("returns", "advantages", "log_probs", "values", "means", "stds", "actions")
    ),
    ("ratio 1 and KL 0 at first", shift_the_old_log_probs, (LEAVING, Stage.SAMPLE)),
    ("ratio 1 and KL 0 at first", move_the_policy_before_the_update, (ENTERING, Stage.OPTIMIZE)),
    ("no epoch ends early", end_an_epoch_early, (ENTERING, Stage.FRESH)),
    ("obs_T goes on as row 0", observe_again, (ENTERING, Stage.OBSERVE)),
    ("weights, worlds and memory stay", move_a_weight, (LEAVING, Stage.FRESH)),
    ("weights, worlds and memory stay", reset_the_worlds, (LEAVING, Stage.FRESH)),
    ("weights, worlds and memory stay", keep_the_cursor, (LEAVING, Stage.FRESH)),
    ("weights, worlds and memory stay", make_the_rollout_anew, (LEAVING, Stage.FRESH)),
    ("weights, worlds and memory stay", replace_obs, (LEAVING, Stage.FRESH)),
]


@pytest.mark.parametrize(
    ("name", "tamper", "when"),
    BREAKAGES,
    ids=[f"{name}: {tamper.__name__}" for name, tamper, _ in BREAKAGES],
)
def test_what_is_broken_on_purpose_turns_red_with_its_iteration(name, tamper, when):
    checker = checked(tamper, 3, config=NORMALISED, when=(when,))
    assert broken(checker)[name] == BROKEN_FROM + 1
    state = next(state for state in checker.states if state.name == name)
    assert state.detail
    assert worst(checker.states, state.stage) is Verdict.BROKEN
    assert worst(checker.states) is Verdict.BROKEN


def test_a_group_that_lost_a_world_is_found():
    trainer = small_trainer()
    checker = InvariantChecker(trainer, EVERY)
    trainer.iterate()
    at = Position(1, Stage.OBSERVE)
    checker.leaving(at)
    assert broken(checker) == {}
    forget_a_world(trainer, at)
    checker.leaving(at)
    assert broken(checker) == {"one row a world": 2}


def test_every_invariant_is_broken_by_some_test():
    names = {name for name, _, _ in BREAKAGES} | {"one row a world"}
    assert names == {kind.name for kind in INVARIANTS}


def test_a_broken_invariant_names_the_first_iteration_and_is_told_once():
    checker = checked(move_a_weight, 5, when=((ENTERING, Stage.ACT_STEP),))
    assert broken(checker) == {"weights fixed": 3}
    (told,) = checker.newly_broken()
    assert "the actor changed while collecting" in told.detail
    assert checker.newly_broken() == []


def test_nothing_is_known_before_the_first_iteration():
    checker = InvariantChecker(small_trainer(), EVERY)
    assert {state.verdict for state in checker.states} == {Verdict.UNCHECKED}
    assert worst(checker.states) is Verdict.UNCHECKED


def test_in_short_iterations_only_some_are_checked_and_none_is_thought_broken():
    trainer = small_trainer()
    checker = InvariantChecker(trainer, budget=0.05)
    trainer.watcher.entering_hooks.append(checker.entering)
    trainer.watcher.leaving_hooks.append(checker.leaving)
    checks = []
    for _ in range(40):
        trainer.iterate()
        checks.append(checker.cost)
    assert broken(checker) == {}
    assert 1 < max(cost.every for cost in checks) <= 100
    assert all(cost.share <= 0.06 or cost.every == 100 for cost in checks)
    assert len(set(checks)) < 40


def test_a_fingerprint_sees_one_bit_and_a_resized_sum_of_rows():
    tensor = torch.arange(12.0).view(3, 4)
    before = fingerprint(tensor)
    tensor[1, 2] = torch.nextafter(tensor[1, 2], torch.tensor(99.0))
    assert fingerprint(tensor) != before
    assert fingerprint(tensor > 3, tensor.double(), tensor.to(torch.int64)).dtype is torch.int64


def test_time_outs_do_happen_in_the_rows_looked_at():
    trainer = small_trainer()
    seen = []

    def look(position):
        if position.stage is Stage.STORE and position.iteration == BROKEN_FROM:
            seen.append(bool(trainer.feedback.time_outs.any()))

    trainer.watcher.leaving_hooks.append(look)
    for _ in range(3):
        trainer.iterate()
    assert seen[BROKEN_FROM % trainer.rollout.num_steps]
    assert isinstance(trainer.env, ToyEnv)
