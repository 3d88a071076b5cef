"""The number that ended a run is found where it began: tensor, step, world and term."""

import math

import pytest
import torch

from tests.trainer.toy_env import ToyEnv
from trainer.config import ActorConfig, CriticConfig, TrainerConfig
from trainer.culprit import find_culprit
from trainer.guard import NonFiniteError
from trainer.loop import Trainer, Unwatched
from trainer.rundir import RunDir
from trainer.session import Session
from trainer.stages import Stage
from trainer.telemetry import Culprit

STEPS, WORLDS = 4, 4
CONFIG = TrainerConfig(
    seed=1,
    num_iterations=6,
    num_steps_per_env=STEPS,
    num_mini_batches=2,
    num_learning_epochs=1,
    actor=ActorConfig(hidden_dims=(4,)),
    critic=CriticConfig(hidden_dims=(4,)),
)


class Spoilt(ToyEnv):
    """Puts NaN into one column of one world's observation, from one look on."""

    def __init__(self, look: int, world: int = 2, column: int = 1) -> None:
        super().__init__(WORLDS)
        self.looks, self.look, self.place = 0, look, (world, column)

    def observe(self):
        observations = super().observe()
        if self.looks == self.look:
            observations["policy"][self.place] = math.nan
        self.looks += 1
        return observations


class At(Unwatched):
    """Does something to the trainer behind a stage."""

    def __init__(self, stage, change):
        self.stage, self.change = stage, change

    def leaving(self, position, *, phase_ends):
        if position.stage is self.stage:
            self.change()


def culprit(env, stage=Stage.FRESH, change=lambda trainer: None):
    """Train until a number is not finite; returns what is said of it, and the trainer."""
    trainer = Trainer(env, CONFIG)
    trainer.watcher = At(stage, lambda: change(trainer))

    def train():
        for _ in range(CONFIG.num_iterations):
            trainer.iterate()

    with pytest.raises(NonFiniteError) as caught:
        train()
    return find_culprit(caught.value, trainer), trainer


def test_an_observation_has_its_step_world_and_term():
    # one look when the trainer is made, four an iteration: the eleventh is step 2 of iteration 3
    found, trainer = culprit(Spoilt(look=10))
    assert trainer.completed_iterations == 2
    assert found[:2] == ("observations policy", Stage.OBSERVE)
    assert math.isnan(found.value)
    assert found[3:] == (2, 2, 1, "noise")


def test_the_observation_behind_the_last_step_is_named_rather_than_the_returns_it_spoils():
    found, _ = culprit(Spoilt(look=4, world=3, column=0))
    assert found[:2] == ("observations policy", Stage.OBSERVE)
    assert found[3:] == (STEPS, 3, 0, "x")


class BadReward(ToyEnv):
    def step(self, actions):
        feedback = super().step(actions)
        if len(self.actions_seen) == 6:
            feedback.reward[1] = math.inf
        return feedback


def test_a_reward_has_its_step_and_world_and_where_there_is_one_term_its_name():
    found, _ = culprit(BadReward(WORLDS))
    assert found == Culprit("rewards", Stage.ACT_STEP, math.inf, 1, 1, None, "near")


def test_of_several_reward_terms_the_one_whose_sum_is_spoilt_is_named():
    env = BadReward(WORLDS)
    env.reward_terms = {"near": 1.0, "smooth": -0.1}
    env.reward_sums = torch.zeros(2, WORLDS)
    env.reward_sums[1, 1] = math.inf
    assert culprit(env)[0].term == "smooth"


def test_an_infinite_return_is_named_with_its_step_and_world():
    def spoil(trainer):
        trainer.rollout.returns[2, 3] = math.inf

    found, _ = culprit(ToyEnv(WORLDS), Stage.TARGETS, spoil)
    assert found == Culprit("returns", Stage.TARGETS, math.inf, 2, 3)


def test_what_the_update_computes_is_traced_to_the_step_and_world_of_its_sample():
    def spoil(trainer):
        with torch.no_grad():
            next(trainer.critic.parameters()).fill_(math.nan)

    found, trainer = culprit(ToyEnv(WORLDS), Stage.SAMPLE, spoil)
    first = int(trainer.mini_batches.permutation[0])
    assert found[:2] == ("new_values", Stage.OPTIMIZE)
    assert (found.step, found.world) == divmod(first, WORLDS)


def test_a_gradient_belongs_to_no_world():
    trainer = Trainer(ToyEnv(WORLDS), CONFIG)
    trainer.iterate()
    trainer.position = trainer.position._replace(stage=Stage.OPTIMIZE)
    error = NonFiniteError("gradient of actor.mlp.0.weight", torch.tensor([[0.0, math.nan]]))
    found = find_culprit(error, trainer)
    assert found.stage is Stage.OPTIMIZE
    assert (found.step, found.world) == (None, None)


def test_other_errors_have_no_culprit():
    assert find_culprit(ValueError("boom"), Trainer(ToyEnv(WORLDS), CONFIG)) is None


def test_a_session_that_fails_tells_it_with_its_folder(tmp_path):
    run_dir = RunDir.create(tmp_path / "run", "")
    session = Session("toy", lambda: Spoilt(look=10), CONFIG, run_dir)
    session.start()
    assert session.join(20)
    failure = session.snapshot().failure
    assert (failure.iteration, failure.stage) == (3, Stage.SAMPLE)
    assert (failure.culprit.world, failure.culprit.term) == (2, "noise")
    assert failure.run_dir == str(tmp_path / "run")
