"""A person's own terms: what is wrong with one is said with its name, what can be used is used."""

import pytest
import torch

from sim.managers.command import Command
from sim.terms.registry import command, curriculum, event, observation, reward, termination
from tests.sim.builders import RecordingScene
from tests.sim.recorded import recorded_env

N = 3
REST = torch.zeros(N, 2)


@observation
def own_observation(env):
    return env.scene.own(env)


@reward
def own_reward(env):
    return env.scene.own(env)


@termination
def own_ending(env):
    return env.scene.own(env)


@event
def own_event(env, ids):
    return env.scene.own(env)


@curriculum
def own_rule(env, ids):
    return env.scene.own(env)


@command("own_command")
class OwnCommand(Command):
    """Has no metrics, and draws what it is told."""

    def __init__(self, env):
        super().__init__(env, 1, (1.0, 1.0))

    def draw(self, ids):
        self.value[ids] = self.env.scene.own(self.env)


@command("own_plain_class")
class OwnPlainClass:
    """No command."""

    def __init__(self, env):
        pass


TERMS = {
    "observations": {"observations": {"policy": {"own_observation": {}}}},
    "rewards": {"rewards": {"own_reward": {"weight": 1.0}}},
    "terminations": {"terminations": {"own_ending": {}}},
    "events": {"events": {"own_event": {"mode": "reset"}}},
    "curriculum": {"curriculum": {"own_rule": {}}},
    "commands": {
        "commands": {"goal": {"term": "own_command"}},
        "rewards": {},
        "curriculum": {},
    },
}


@pytest.fixture
def stepped(monkeypatch):
    def build_and_step(kind, function):
        """Make an env whose term of that kind is the function, and end its episodes."""
        monkeypatch.setattr(RecordingScene, "own", staticmethod(function), raising=False)
        env = recorded_env(num_envs=N, **TERMS[kind])
        env.episode_length[:] = env.max_episode_length - 1
        return env, env.step(REST)

    return build_and_step


def boom(env):
    raise KeyError("boom")


@pytest.mark.parametrize("kind", TERMS)
def test_an_error_of_a_term_keeps_its_type_and_names_the_term(stepped, kind):
    with pytest.raises(KeyError, match="boom") as caught:
        stepped(kind, boom)
    key = {
        "observations": "observations.policy.own_observation",
        "rewards": "rewards.own_reward",
        "terminations": "terminations.own_ending",
        "events": "events.own_event",
        "curriculum": "curriculum.own_rule",
        "commands": "commands.goal",
    }[kind]
    assert caught.value.__notes__ == [f"in the term env.{key}"]


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("rewards", 1.0, "env.rewards.own_reward returned float; it must return a tensor"),
        ("rewards", None, "env.rewards.own_reward returned NoneType"),
        ("rewards", torch.tensor(1.0), r"returned a tensor \[\]; it must return one number a"),
        ("rewards", torch.ones(N, 1), r"returned a tensor \[3, 1\]; .* one number a world, \[3\]"),
        ("rewards", torch.ones(N + 1), r"returned a tensor \[4\]"),
        ("rewards", torch.ones(N, device="meta"), "on meta, the worlds are on cpu"),
        ("terminations", True, "env.terminations.own_ending returned bool"),
        ("terminations", torch.ones(N, N, dtype=torch.bool), r"returned a tensor \[3, 3\]"),
        (
            "observations",
            torch.ones(N),
            r"env.observations.policy.own_observation returned a tensor \[3\]; it must return one "
            r"row a world, \[3, width\]",
        ),
        ("observations", torch.ones(N + 1, 2), r"returned a tensor \[4, 2\]"),
        ("observations", torch.ones(N, 2, 2), r"returned a tensor \[3, 2, 2\]"),
        ("observations", torch.tensor(0.0), r"returned a tensor \[\]"),
        ("observations", torch.ones(N, 2, device="meta"), "on meta"),
        ("curriculum", "easy", "env.curriculum.own_rule returned 'easy'; it must return a number"),
        ("curriculum", torch.ones(2), "it must return a number, or a table of numbers"),
    ],
)
def test_what_a_manager_cannot_use_is_said_with_the_terms_name(stepped, kind, value, said):
    with pytest.raises((TypeError, ValueError), match=said):
        stepped(kind, lambda env: value)


def test_a_row_whose_width_changes_is_told(stepped):
    env, _ = stepped("observations", lambda env: torch.ones(N, 1 + env.common_step_counter))
    with pytest.raises(ValueError, match=r"returned a tensor \[3, 2\]; .* \[3, 1\]"):
        env.observe()


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.bool])
def test_numbers_of_another_type_are_taken_as_they_are(stepped, dtype):
    _, feedback = stepped("rewards", lambda env: torch.ones(N, dtype=dtype))
    assert feedback.reward.dtype == torch.float32
    assert feedback.reward.tolist() == pytest.approx([0.02] * N)
    env, _ = stepped("observations", lambda env: torch.ones(N, 2, dtype=dtype))
    assert env.observe()["policy"].dtype == torch.float32
    _, feedback = stepped("terminations", lambda env: torch.ones(N, dtype=dtype))
    assert feedback.terminated.dtype == torch.bool
    assert feedback.terminated.all()


def test_a_network_in_a_term_leaves_no_graph_behind(stepped):
    weight = torch.ones(N, requires_grad=True)
    _, feedback = stepped("rewards", lambda env: weight * 2)
    assert not feedback.reward.requires_grad
    env, _ = stepped("observations", lambda env: (weight * 2).unsqueeze(1))
    assert not env.observe()["policy"].requires_grad


def test_a_rule_may_tell_nothing_or_several_numbers(stepped):
    assert not any("own_rule" in tag for tag in stepped("curriculum", lambda env: None)[1].log)
    log = stepped("curriculum", lambda env: {"easy": 1, "hard": torch.tensor(2.0)})[1].log
    assert log["Curriculum/own_rule/easy"] == 1
    assert log["Curriculum/own_rule/hard"] == 2.0


def test_a_command_without_metrics_is_enough(stepped):
    env, feedback = stepped("commands", lambda env: 5.0)
    assert env.commands.value("goal").tolist() == [[5.0]] * N
    assert not any(tag.startswith("Metrics") for tag in feedback.log)


def test_a_class_of_another_kind_is_refused():
    settings = {"commands": {"goal": {"term": "own_plain_class"}}, "rewards": {}, "curriculum": {}}
    with pytest.raises(TypeError, match=r"env.commands.goal: OwnPlainClass must be a subclass of "):
        recorded_env(num_envs=N, **settings)
