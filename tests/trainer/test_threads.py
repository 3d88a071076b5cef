import threading

import pytest
import torch

from tests.trainer.toy_env import ToyEnv
from trainer import threads
from trainer.config import TrainerConfig
from trainer.loop import Trainer
from trainer.threads import MIN_THREAD_WORK, TorchThreads

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def four_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


def here():
    return threading.current_thread(), torch.get_num_threads()


@pytest.mark.usefixtures("four_threads")
def test_large_things_are_computed_at_the_same_time_with_half_of_the_threads_each():
    met = threading.Barrier(2, timeout=10)  # fails where one waits for the other to end

    def meet():
        met.wait()
        return here()

    (first, ours), (second, theirs) = TorchThreads(CPU).side_by_side(
        meet, meet, work=10 * MIN_THREAD_WORK
    )
    assert first is threading.current_thread()
    assert second is not first
    assert (ours, theirs, torch.get_num_threads()) == (2, 2, 4)


@pytest.mark.usefixtures("four_threads")
@pytest.mark.parametrize(
    ("device", "work"), [(CPU, MIN_THREAD_WORK - 1), (GPU, 100 * MIN_THREAD_WORK)]
)
def test_small_things_and_those_of_a_gpu_are_computed_one_after_the_other(device, work):
    this = threading.current_thread()
    assert TorchThreads(device).side_by_side(here, here, work) == ((this, 1), (this, 1))
    assert torch.get_num_threads() == 4


@pytest.mark.usefixtures("four_threads")
@pytest.mark.parametrize(("work", "count"), [(0, 1), (1, 1), (2, 2), (1000, 2)])
def test_work_gets_the_threads_that_it_keeps_busy_of_one_half_and_gives_them_back(work, count):
    with TorchThreads(CPU).at(work * MIN_THREAD_WORK):
        assert torch.get_num_threads() == count
    assert torch.get_num_threads() == 4


@pytest.mark.usefixtures("four_threads")
def test_both_sides_have_the_callers_grad_mode():
    share = TorchThreads(CPU)
    for mode in (torch.no_grad(), torch.enable_grad()):
        with mode:
            expected = torch.is_grad_enabled()
            asked = (torch.is_grad_enabled, torch.is_grad_enabled)
            assert share.side_by_side(*asked, 10 * MIN_THREAD_WORK) == (expected, expected)


@pytest.mark.usefixtures("four_threads")
@pytest.mark.parametrize("side", [0, 1])
def test_an_error_of_either_side_is_told_when_both_are_at_rest(side):
    ended = threading.Event()

    def fail():
        raise ArithmeticError("of one side")

    def slow():
        ended.wait(0.1)
        ended.set()

    sides = (fail, slow) if side == 0 else (slow, fail)
    with pytest.raises(ArithmeticError, match="of one side"):
        TorchThreads(CPU).side_by_side(*sides, 10 * MIN_THREAD_WORK)
    assert ended.is_set()
    assert torch.get_num_threads() == 4


def test_training_is_the_same_bit_for_bit_whether_side_by_side_or_not(monkeypatch):
    def trained():
        config = TrainerConfig(
            seed=3,
            num_steps_per_env=8,
            actor={"hidden_dims": [16], "obs_normalization": True},
            critic={"hidden_dims": [16], "obs_normalization": True},
        )
        trainer = Trainer(ToyEnv(num_envs=8, max_episode_length=5), config)
        for _ in range(3):
            trainer.iterate()
        return [*trainer.actor.state_dict().values(), *trainer.critic.state_dict().values()]

    helped = []

    class Noting:
        def submit(self, *args):
            helped.append(args)
            return helper.submit(*args)

    helper = threads._HELPER
    monkeypatch.setattr(threads, "_HELPER", Noting())
    alone = trained()
    assert not helped
    monkeypatch.setattr(threads, "MIN_THREAD_WORK", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    side_by_side = trained()
    assert helped
    assert all(map(torch.equal, alone, side_by_side))
