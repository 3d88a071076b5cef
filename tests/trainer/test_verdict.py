"""On which side the numbers of a run stopped being finite, and where was looked."""

import math

import pytest
import torch

from tests.trainer.test_culprit import CONFIG, WORLDS, At, BadReward, Spoilt
from tests.trainer.toy_env import ToyEnv
from trainer.culprit import find_culprit
from trainer.failing import failure_of
from trainer.guard import NonFiniteError
from trainer.loop import Trainer
from trainer.rundir import RunDir
from trainer.session import Session
from trainer.stages import Stage
from trainer.telemetry import Position
from trainer.verdict import find_verdict


class BrokenWorldError(ArithmeticError):
    def __init__(self, message):
        super().__init__(message)
        self.broken_worlds = {2: "qvel"}


class Shown(ToyEnv):
    """Shows its physics, in which a world may break."""

    nan_guard = True

    def __init__(self, breaks_at: int | None = None) -> None:
        super().__init__(WORLDS)
        self.breaks_at = breaks_at

    def step(self, actions):
        if len(self.actions_seen) == self.breaks_at:
            raise BrokenWorldError("world 2 went bad")
        return super().step(actions)

    def physics_state(self):
        return {"qpos": self.x.unsqueeze(1), "qvel": torch.zeros(WORLDS, 1)}


def verdict(env, stage=Stage.FRESH, change=lambda trainer: None):
    """Train until a number is not finite; returns what is said of it."""
    trainer = Trainer(env, CONFIG)
    trainer.watcher = At(stage, lambda: change(trainer))

    def train():
        for _ in range(CONFIG.num_iterations):
            trainer.iterate()

    with pytest.raises(ArithmeticError) as caught:
        train()
    return find_verdict(caught.value, trainer, find_culprit(caught.value, trainer))


def break_return(trainer):
    trainer.rollout.returns[2, 3] = math.inf


def break_std(trainer):
    with torch.no_grad():
        trainer.actor.distribution.std_param.fill_(math.nan)


def test_an_infinite_return_is_the_learners_and_all_that_was_examined_is_listed():
    found = verdict(Shown(), Stage.TARGETS, break_return)
    assert found.sentence == "physics finite, learner non-finite"
    physics, task, learner = found.looked_at
    assert physics == (
        "physics (qpos, qvel of 4 worlds; NaN guard on, 0 worlds reset by it in this iteration): "
        "finite"
    )
    assert task == "task (observations policy, rewards): finite"
    assert learner.startswith("learner (means, stds, actions, log_probs, values, returns, ")
    assert learner.endswith("optimizer): non-finite: returns")


def test_a_std_that_is_not_finite_is_the_learners_although_the_worlds_go_bad_with_it():
    found = verdict(Shown(), Stage.FRESH, break_std)
    # the toy's position is its action: what follows from the actions is not the physics' fault
    assert found.sentence.startswith("learner non-finite")
    assert "non-finite: stds, actor.distribution.std_param" in found.looked_at[2]
    assert found.looked_at[1].endswith("finite until then")


@pytest.mark.parametrize("env", [Spoilt(look=10), Spoilt(look=4), BadReward(WORLDS)])
def test_an_observation_or_reward_is_the_tasks_and_the_learner_is_judged_by_its_weights(env):
    env.nan_guard, env.physics_state = True, lambda: {"qpos": torch.zeros(WORLDS, 1)}
    found = verdict(env)
    assert found.sentence == "physics finite, task non-finite, learner finite"
    assert found.looked_at[2].endswith(("finite until then", ": finite"))


def test_worlds_that_break_under_sound_actions_are_the_physics_fault():
    env = Shown(breaks_at=6)
    env.nan_guard = False
    found = verdict(env)
    assert found.sentence == "physics non-finite, learner finite"
    physics, task, learner = found.looked_at
    assert physics.endswith("NaN guard off): non-finite: qvel of world 2")
    assert task.endswith(": finite")
    assert learner.endswith(": finite")


def test_worlds_that_break_under_actions_that_are_not_finite_are_the_learners_fault():
    found = verdict(Shown(breaks_at=4), Stage.FRESH, break_std)
    assert found.sentence == "learner non-finite, physics non-finite"


def test_of_worlds_that_hide_their_physics_the_task_is_all_that_is_judged():
    found = verdict(ToyEnv(WORLDS), Stage.TARGETS, break_return)
    assert found.sentence == "task finite, learner non-finite"
    assert len(found.looked_at) == 2
    assert verdict(Spoilt(look=10)).sentence == "task non-finite, learner finite"


def test_other_errors_have_no_verdict():
    trainer = Trainer(ToyEnv(WORLDS), CONFIG)
    for error in (ValueError("boom"), ZeroDivisionError("of a term")):
        assert find_verdict(error, trainer, None) is None


class WithInfiniteReturn(Session):
    def leaving(self, position, *, phase_ends):
        if position.stage is Stage.TARGETS and position.iteration == 1:
            break_return(self._trainer)
        super().leaving(position, phase_ends=phase_ends)


def test_a_failed_run_says_it_everywhere_and_keeps_its_weights(tmp_path):
    run_dir = RunDir.create(tmp_path / "run", "")
    session = WithInfiniteReturn("toy", Shown, CONFIG, run_dir)
    session.start()
    assert session.join(20)
    said = "NonFiniteError: returns: 1 of 16 non-finite (physics finite, learner non-finite)"
    failure = session.snapshot().failure
    assert failure.message == said
    assert len(failure.looked_at) == 3
    assert said in (tmp_path / "run" / "status.json").read_text()
    assert said in (tmp_path / "run" / "events.jsonl").read_text()
    assert session.snapshot().info.nan_guard is True
    weights = torch.load(tmp_path / "run" / "checkpoints" / "model_1.pt", weights_only=True)
    assert all(tensor.isfinite().all() for tensor in weights["actor"].values())


def test_numbers_of_the_update_are_the_learners():
    trainer = Trainer(Shown(), CONFIG)
    trainer.iterate()
    error = NonFiniteError("surrogate", torch.tensor(math.nan))
    found = find_verdict(error, trainer, None)
    assert found.sentence == "physics finite, learner non-finite"
    assert found.looked_at[2].endswith("non-finite: surrogate")


def test_what_an_error_says_of_its_place_is_in_the_message_of_the_failure():
    error = KeyError("boom")
    error.add_note("in the term env.rewards.mine")
    failure = failure_of(error, Position(), None, run_dir="", num_envs=1, has_ranks=False)
    assert failure.message == "KeyError: 'boom' (in the term env.rewards.mine)"
