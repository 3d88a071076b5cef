import time

import pytest
import torch

from tests.sim.builders import preset_env
from tests.trainer.toy_env import ToyEnv
from trainer import robot_watch
from trainer.config import ActorConfig, CriticConfig, TrainerConfig
from trainer.loop import Trainer
from trainer.pose import Choice, Quantity, RobotPose, RobotRequest
from trainer.robot_watch import RobotWatch
from trainer.rundir import RunDir
from trainer.session import Session
from trainer.telemetry import Command, RunState
from trainer.wire import pack, unpack

SETTINGS = TrainerConfig(
    seed=0,
    num_iterations=10_000,
    num_steps_per_env=4,
    num_mini_batches=1,
    actor=ActorConfig(hidden_dims=(4,)),
    critic=CriticConfig(hidden_dims=(4,)),
)


@pytest.fixture(scope="module")
def trainer():
    trainer = Trainer(preset_env("cartpole"), SETTINGS)
    trainer.iterate()
    return trainer


@pytest.fixture
def watch(trainer):
    watch = RobotWatch()
    watch.attach(trainer)
    return watch


def test_nothing_is_made_for_nobody(watch):
    assert not watch.refresh(even_if_recent=True)
    assert watch.pose is None
    watch.request = RobotRequest(Choice.CHOSEN, 1)
    assert watch.refresh()
    watch.request = None
    assert watch.refresh()
    assert watch.pose is None


def test_pictures_are_made_a_few_times_a_second(watch, monkeypatch):
    now = 100.0
    monkeypatch.setattr(robot_watch.time, "perf_counter", lambda: now)
    watch.request = RobotRequest()
    assert watch.refresh()
    first = watch.pose
    now += robot_watch.INTERVAL * 0.9
    assert not watch.refresh()
    assert watch.pose is first
    assert watch.refresh(even_if_recent=True)
    now += robot_watch.INTERVAL
    assert watch.refresh()


@pytest.mark.parametrize(("asked", "shown"), [(0, 0), (2, 2), (99, 3), (-5, 0)])
def test_a_chosen_world_is_one_that_there_is(watch, asked, shown):
    watch.request = RobotRequest(Choice.CHOSEN, asked)
    watch.refresh()
    assert watch.pose.world == shown


def test_the_worst_and_the_best_are_followed_until_their_episode_ends(watch, trainer, monkeypatch):
    rates = torch.tensor([0.3, -0.2, 0.9, 0.1])
    monkeypatch.setattr(type(trainer.episodes), "reward_a_step", property(lambda self: rates))
    trainer.env.episode_length[:] = 10
    for choice, world in ((Choice.WORST, 1), (Choice.BEST, 2)):
        watch.request = RobotRequest(choice)
        watch.refresh(even_if_recent=True)
        assert watch.pose.world == world
    rates[0] = 5.0  # another one is better now
    trainer.env.episode_length += 1
    watch.refresh(even_if_recent=True)
    assert watch.pose.world == 2
    trainer.env.episode_length[2] = 0  # its episode has ended
    watch.refresh(even_if_recent=True)
    assert watch.pose.world == 0


def test_an_env_without_pictures_gives_none():
    watch = RobotWatch()
    watch.attach(Trainer(ToyEnv(), SETTINGS))
    watch.request = RobotRequest()
    assert not watch.refresh()
    assert watch.pose is None


def test_requests_and_poses_travel_to_another_process(watch):
    watch.request = RobotRequest(Choice.BEST)
    watch.refresh()
    buffer = bytearray(pack({"request": watch.request, "pose": watch.pose}))
    (message,) = unpack(buffer)
    assert message["request"] == watch.request
    pose = message["pose"]
    assert isinstance(pose, RobotPose)
    assert pose.lines.shape == watch.pose.lines.shape
    assert pose.contacts.dtype == bool
    env = preset_env("go2_flat")
    fields = {**env.pose(0), "quantities": tuple(Quantity(*q) for q in env.pose(0)["quantities"])}
    (pose,) = unpack(bytearray(pack(RobotPose(**fields))))
    assert pose.quantities[0].label == "forward"
    assert len(pack(pose)) < 5000


def test_a_running_session_shows_the_robot_that_is_looked_at(tmp_path):
    run_dir = RunDir.create(tmp_path / "run", "")
    session = Session("cartpole", lambda: preset_env("cartpole"), SETTINGS, run_dir)
    session.start()

    def until(condition):
        deadline = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < deadline
            assert session.snapshot().failure is None
            time.sleep(0.01)

    until(lambda: session.snapshot().completed_iterations > 1)
    assert session.snapshot().robot is None
    session.watch_robot(RobotRequest(Choice.CHOSEN, 2))
    until(lambda: session.snapshot().robot is not None)
    assert session.snapshot().robot.world == 2
    session.command(Command.PAUSE)
    until(lambda: session.snapshot().state is RunState.PAUSED)
    session.watch_robot(RobotRequest(Choice.CHOSEN, 1))
    until(lambda: session.snapshot().robot.world == 1)
    session.watch_robot(None)
    until(lambda: session.snapshot().robot is None)
    session.command(Command.STOP_NOW)
    assert session.join(30)
