"""D14: what is shown of a run makes the loop wait for the device no oftener than training does."""

import collections
import threading
import time

import pytest
import torch

from tests.trainer.stopped import different
from tests.trainer.toy_env import ToyEnv
from trainer.rundir import RunDir
from trainer.session import Session
from trainer.stages import Stage
from trainer.views import EpisodesPicture, RolloutPicture

ITERATIONS = 8
READS = ("cpu", "numpy", "item", "tolist", "__bool__", "__float__", "__int__", "__index__")


class SlowEnv(ToyEnv):
    """A step takes longer than the interval of the pictures, so that each could take one."""

    def step(self, actions):
        time.sleep(0.02)
        return super().step(actions)


@pytest.fixture
def reads(monkeypatch):
    """Times that a tensor was read by the session's thread, by the stage in which it was.

    Reading a picture that has arrived is none: it lies in the host's memory already.
    """
    counted, exempt = collections.Counter(), threading.local()

    def counting(name):
        original = getattr(torch.Tensor, name)

        def read(self, *args, **kwargs):
            thread = threading.current_thread()
            if thread.name == "session" and not getattr(exempt, "on", False):
                counted[stage_of.get(thread)] += 1
            return original(self, *args, **kwargs)

        return read

    stage_of = {}
    for name in READS:
        monkeypatch.setattr(torch.Tensor, name, counting(name))
    entering = Session.entering

    def exempted(view):
        def viewing(self):
            exempt.on = True
            try:
                return view(self)
            finally:
                exempt.on = False

        return viewing

    def enter(self, position):
        stage_of[threading.current_thread()] = position.stage
        entering(self, position)

    for picture in (RolloutPicture, EpisodesPicture):
        monkeypatch.setattr(picture, "view", exempted(picture.view))
    monkeypatch.setattr(Session, "entering", enter)
    return counted


def train(tmp_path, *, watched):
    """Train; returns the pictures of a filling rollout that were seen."""
    config = different(num_iterations=ITERATIONS, save_interval=1000)
    session = Session("toy", SlowEnv, config, RunDir.create(tmp_path / str(watched), ""))
    session.start()
    seen = set()
    while not session.join(0.01):
        if watched and (rollout := session.snapshot().rollout) is not None:
            seen.add((rollout.filled, rollout.reward.tobytes()))
    return seen


def test_a_watched_run_reads_the_device_as_often_as_one_that_nobody_watches(tmp_path, reads):
    assert not train(tmp_path, watched=False)
    alone = dict(reads)
    reads.clear()
    assert len(train(tmp_path, watched=True)) > 3
    steps = (Stage.OBSERVE, Stage.ACT_STEP, Stage.STORE)
    assert {stage: reads[stage] for stage in steps} == {
        stage: alone.get(stage, 0) for stage in steps
    }
    assert sum(reads.values()) <= sum(alone.values()) + ITERATIONS


def test_nobody_watching_no_picture_is_taken(tmp_path, monkeypatch):
    taken = []
    init = RolloutPicture.__init__
    monkeypatch.setattr(
        RolloutPicture,
        "__init__",
        lambda self, *args, **options: taken.append(args) or init(self, *args, **options),
    )
    train(tmp_path, watched=False)
    assert not taken
    train(tmp_path, watched=True)
    assert taken
