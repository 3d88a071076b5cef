"""The order of a step and of a reset is Isaac Lab's, held by worlds that keep a record."""

import torch

from tests.sim.recorded import recorded_env

TICKS = ["apply", "tick"] * 3 + ["apply", "last tick", "update"]


def record_manager_calls(env, monkeypatch):
    def record(manager, method):
        original = getattr(manager, method)
        name = next(key for key, value in vars(env).items() if value is manager)

        def recorded(*args):
            env.scene.calls.append(f"{name}.{method}")
            return original(*args)

        monkeypatch.setattr(manager, method, recorded)

    record(env.actions, "process")
    for manager in (
        env.actions,
        env.rewards,
        env.curriculum,
        env.commands,
        env.events,
        env.terminations,
    ):
        record(manager, "reset")


def test_a_step_without_an_ending_runs_in_order(monkeypatch):
    env = recorded_env()
    record_manager_calls(env, monkeypatch)
    env.scene.calls.clear()
    env.step(torch.zeros(3, 2))
    env.observe()
    assert env.scene.calls == [
        "actions.process",
        *TICKS,
        "bad worlds",
        "terminations at 1",
        "reward under 1",
        "command measure",
        "command update",
        "observe",
    ]


def test_a_step_with_an_ending_resets_only_the_finished_world_in_order(monkeypatch):
    env = recorded_env()
    record_manager_calls(env, monkeypatch)
    env.step(torch.zeros(3, 2))
    env.scene.calls.clear()
    env.scene.fallen[1] = True
    env.step(torch.zeros(3, 2))
    env.observe()
    assert env.scene.calls == [
        "actions.process",
        *TICKS,
        "bad worlds",
        "terminations at 2",
        "reward under 1",
        "curriculum [1] under 1",
        "scene reset [1]",
        "reset event [1]",
        "commit [1]",
        "actions.reset",
        "rewards.reset",
        "curriculum.reset",
        "commands.reset",
        "command draw [1]",
        "events.reset",
        "terminations.reset",
        "command measure",
        "command update",
        "observe",
    ]
    assert env.episode_length.tolist() == [2, 0, 2]


def test_commands_are_updated_before_interval_events_and_the_push_is_observed():
    env = recorded_env()
    for _ in range(2):
        env.step(torch.zeros(3, 2))
    env.scene.calls.clear()
    env.step(torch.zeros(3, 2))
    env.observe()
    assert env.scene.calls[-4:] == [
        "command update",
        "interval event [0, 1, 2]",
        "commit [0, 1, 2]",
        "observe",
    ]


def test_a_new_env_runs_startup_events_once_and_skips_the_curriculum():
    env = recorded_env()
    everyone = "[0, 1, 2]"
    assert [call for call in env.scene.calls if call != "observe"] == [
        f"startup event {everyone} True",
        f"scene reset {everyone}",
        f"reset event {everyone}",
        f"commit {everyone}",
        f"command draw {everyone}",
    ]


def test_an_observation_in_a_step_is_never_computed_by_the_step_itself():
    env = recorded_env()
    env.scene.calls.clear()
    for _ in range(5):
        env.step(torch.zeros(3, 2))
    assert "observe" not in env.scene.calls
