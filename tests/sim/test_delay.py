"""Late targets: equally late in all parts, and nothing of an earlier episode."""

import dataclasses

import torch

from sim.actuators import JointTargets
from sim.delay import TargetDelay
from sim.robots import find_robot
from tests.sim.builders import preset_env


def targets(value, num_worlds=2):
    full = torch.full((num_worlds, 1), float(value))
    return JointTargets(full, full * 10, full * 100)


def applied(delay, value):
    late = delay.push(targets(value))
    assert torch.equal(late.velocity, late.position * 10)
    assert torch.equal(late.effort, late.position * 100)
    return late.position[:, 0].tolist()


def test_targets_arrive_the_given_number_of_ticks_late():
    delay = TargetDelay(3, targets(0))
    got = [applied(delay, k)[0] for k in range(8)]
    assert got == [0, 0, 0, 0, 1, 2, 3, 4]


def test_after_a_reset_nothing_of_the_old_episode_is_applied():
    delay = TargetDelay(3, targets(0))
    for _ in range(5):
        applied(delay, 1)
    delay.reset(torch.tensor([1]))
    got = [applied(delay, 0) for _ in range(5)]
    assert [world_1 for _, world_1 in got] == [0, 0, 0, 0, 0]
    assert [world_0 for world_0, _ in got] == [1, 1, 1, 0, 0]


def test_a_restored_delay_continues_as_the_saved_one():
    delay, twin = TargetDelay(2, targets(0)), TargetDelay(2, targets(0))
    for k in range(4):
        applied(delay, k)
    twin.load_state_dict(delay.state_dict())
    assert [applied(delay, 9), applied(delay, 9)] == [applied(twin, 9), applied(twin, 9)]


def test_a_reset_world_of_a_robot_forgets_the_targets_under_way(monkeypatch):
    late = dataclasses.replace(find_robot("cartpole"), delay_ticks=3)
    monkeypatch.setattr("sim.scene.find_robot", lambda name: late)
    env = preset_env("cartpole", num_envs=2)
    scene, cart = env.scene, slice(0, 1)

    def push(newtons, ticks):
        scene.robot.set_joint_effort_target(torch.full((2, 1), newtons), cart)
        got = []
        for _ in range(ticks):
            scene.tick(last=False)
            got.append(scene.physics.ctrl[:, 0].tolist())
        return got

    assert push(5.0, 5)[-1] == [5.0, 5.0]
    second = torch.tensor([1])
    scene.reset(second)
    scene.commit(second)
    assert push(0.0, 5) == [[5.0, 0.0]] * 3 + [[0.0, 0.0]] * 2
    env.close()
