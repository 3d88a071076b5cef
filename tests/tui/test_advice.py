import pytest
import torch

from trainer.guard import NonFiniteError
from trainer.stages import Stage
from trainer.telemetry import Failure
from tui.advice import advice, place


def failure(error, stage=Stage.OPTIMIZE):
    return Failure(f"{type(error).__name__}: {error}", "", stage, 3)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (NonFiniteError("observations policy", torch.tensor([torch.nan])), "env.physics_dt"),
        (NonFiniteError("rewards", torch.tensor([torch.inf])), "env.rewards"),
        (NonFiniteError("value_loss", torch.tensor(torch.inf)), "env.rewards"),
        (NonFiniteError("new_means", torch.tensor([torch.nan])), "trainer.learning_rate"),
        (NonFiniteError("gradient norm", torch.tensor(torch.inf)), "trainer.learning_rate"),
        (OSError(28, "No space left on device"), "disk space"),
    ],
)
def test_what_to_try_follows_from_the_quantity(error, remedy):
    assert remedy in advice(failure(error))


@pytest.mark.parametrize(
    "message",
    [
        "out of memory with 8 worlds: asked for 2 GB",
        "rank 1: out of memory: std::bad_alloc",
        "rank 3 (process 77) was killed by SIGKILL",
    ],
)
def test_fewer_worlds_help_where_memory_is_out(message):
    assert "--num-envs" in advice(Failure(message, "", None, 1))


def test_what_follows_from_the_numbers_of_the_run_comes_first():
    lack = Failure("out of memory", "", None, 1, True, "fewer worlds: --num-envs 512")
    assert advice(lack) == "fewer worlds: --num-envs 512"


def test_the_rank_that_failed_does_not_hide_the_quantity():
    assert "env.rewards" in advice(Failure("rank 1: NonFiniteError: rewards: ...", "", None, 1))


def test_a_failure_of_the_program_has_no_remedy():
    assert advice(failure(RuntimeError("boom"))) == ""


def test_a_failure_has_its_place():
    assert place(failure(RuntimeError("boom"))) == "iteration 3, stage optimize"
    assert place(failure(RuntimeError("boom"), None)) == "before the first stage"
