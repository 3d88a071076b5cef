import math
import time

import pytest
import torch

from presets.problems import PresetError
from tests.trainer.toy_env import ToyEnv
from tests.tui.poses import arm, walker
from trainer.playing import Player
from tui.play import performance as module
from tui.play.performance import Performance

WAIT = 10.0


class Robots(ToyEnv):
    """Toy worlds with a robot that can be seen and steered."""

    def __init__(self, max_episode_length=50, look=walker):
        super().__init__(2, max_episode_length)
        self.step_dt = 0.01
        self.look = look
        self.told = {0: (0.0, 0.0, 0.0), 1: (0.0, 0.0, 0.0)}
        self.redrawn = []
        self.steps = 0

    def step(self, actions):
        self.steps += 1
        return super().step(actions)

    def pose(self, world):
        pose = self.look(world=world, seconds=float(self.episode_length[world]) * self.step_dt)
        fields = {name: getattr(pose, name) for name in pose.__dataclass_fields__}
        fields["quantities"] = [
            entry._replace(told=told)
            for entry, told in zip(pose.quantities, self.told[world], strict=False)
        ]
        return fields

    def hold_commands(self):
        self.told["held"] = True

    def steer(self, world, values):
        self.told[world] = tuple(values)

    def redraw_commands(self, world):
        self.redrawn.append(world)


class Push:
    def __call__(self, observations):
        return torch.zeros(2, 1)

    def reset(self, done):
        pass


@pytest.fixture
def begin():
    started = []

    def begin(env=None, **more):
        env = env or Robots(**more)
        performance = Performance(lambda: Player(env, Push()))
        performance.env = env
        performance.start()
        started.append(performance)
        until(lambda: performance.frame.is_ready or performance.frame.failure)
        return performance

    yield begin
    for performance in started:
        assert performance.stop(WAIT)
        assert performance.env.closed


def until(condition):
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def paused(performance):
    performance.toggle_pause()
    until(lambda: performance.frame.is_paused)
    return performance


def test_it_plays_in_the_pace_of_the_world(begin):
    performance = begin()
    assert performance.env.told["held"]
    until(lambda: performance.frame.steps > 20)
    began, steps = time.monotonic(), performance.frame.steps
    until(lambda: performance.frame.steps >= steps + 50)
    assert time.monotonic() - began > 0.4  # 0.5 s, were it not for the last step's share
    until(lambda: performance.frame.pace > 0)
    assert performance.frame.pace < 1.3
    assert performance.frame.pose.world == 0


def test_speeds_go_up_to_as_fast_as_it_goes_and_down_to_slow_motion(begin):
    performance = begin()
    for _ in range(9):
        performance.change_speed(1)
    until(lambda: math.isinf(performance.frame.speed))
    until(lambda: performance.frame.pace > 3)
    for _ in range(9):
        performance.change_speed(-1)
    until(lambda: performance.frame.speed == 0.1)


def test_paused_nothing_moves_but_step_by_step(begin):
    performance = paused(begin())
    steps = performance.env.steps
    time.sleep(0.1)
    assert performance.env.steps == steps
    performance.step_once()
    until(lambda: performance.env.steps == steps + 1)
    performance.toggle_pause()
    until(lambda: performance.env.steps > steps + 3)
    performance.step_once()  # means nothing now
    assert not performance.frame.is_paused


def test_keys_steer_within_what_training_drew_from(begin):
    performance = paused(begin())
    performance.steer(0, 1)
    until(lambda: performance.env.told[0][0] == pytest.approx(0.1))  # a twentieth of -1 to 1
    assert performance.frame.is_steered
    for _ in range(30):
        performance.steer(2, -1)
    until(lambda: performance.env.told[0][2] == -1.0)
    performance.steer(7, 1)  # there is no such axis
    performance.stand()
    until(lambda: performance.env.told[0] == (0.0, 0.0, 0.0))
    performance.redraw_command()
    until(lambda: performance.env.redrawn == [0])
    until(lambda: not performance.frame.is_steered)


def test_a_target_out_of_reach_of_0_is_brought_as_near_as_it_goes(begin):
    performance = paused(begin(look=arm))
    performance.stand()
    until(lambda: performance.env.told[0] == (0.2,))  # ahead is drawn from 0.2 to 0.4 m


def test_each_world_is_steered_by_itself(begin):
    performance = paused(begin())
    performance.steer(0, 1)
    performance.turn_to(1)
    until(lambda: performance.frame.world == 1)
    assert not performance.frame.is_steered
    performance.turn_to(1)
    until(lambda: performance.frame.world == 0)
    assert performance.frame.is_steered
    assert performance.env.told[1] == (0.0, 0.0, 0.0)


def test_episodes_are_counted_and_the_last_one_told(begin):
    performance = begin(max_episode_length=5)
    until(lambda: performance.frame.episodes >= 4)
    frame = performance.frame
    assert frame.falls == 0
    assert frame.last.seconds == pytest.approx(0.05)
    assert not frame.last.fell


def test_a_restart_begins_the_next_episode_even_while_paused(begin):
    performance = paused(begin(max_episode_length=100_000))
    until(lambda: performance.env.episode_length[0] > 0)
    performance.restart()
    until(lambda: performance.frame.episodes == 1)
    assert performance.env.episode_length[0] == 0


def test_worlds_without_pictures_play_too(begin):
    performance = begin(ToyEnv(2))
    until(lambda: performance.frame.steps > 2)
    assert performance.frame.pose is None
    performance.steer(0, 1)
    performance.stand()
    performance.redraw_command()
    until(lambda: performance.frame.steps > 6)
    assert not performance.frame.failure


@pytest.mark.parametrize(
    ("error", "said", "has_trace"),
    [
        (PresetError(["first", "second"]), "first\nsecond", False),
        (RuntimeError("boom"), "RuntimeError: boom", True),
    ],
)
def test_why_it_could_not_begin_is_told(error, said, has_trace):
    def fail():
        raise error

    performance = Performance(fail)
    performance.start()
    until(lambda: performance.frame.failure)
    assert performance.frame.failure == said
    assert bool(performance.frame.traceback) is has_trace
    assert performance.stop(WAIT)


def test_a_machine_that_is_too_slow_does_not_hurry_afterwards(begin, monkeypatch):
    monkeypatch.setattr(module, "NAP", 0.02)
    performance = begin()
    slow = performance.env.step

    def step(actions):
        time.sleep(0.05)
        return slow(actions)

    performance.env.step = step
    until(lambda: performance.frame.steps > 10)
    performance.env.step = slow
    before, began = performance.frame.steps, time.monotonic()
    until(lambda: performance.frame.steps > before + 20)
    assert time.monotonic() - began > 0.1
