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
        (MemoryError(), "--num-envs"),
        (ValueError("std::bad_alloc"), "--num-envs"),
        (OSError(28, "No space left on device"), "disk space"),
    ],
)
def test_what_to_try_follows_from_the_quantity(error, remedy):
    assert remedy in advice(failure(error))


def test_a_failure_of_the_program_has_no_remedy():
    assert advice(failure(RuntimeError("boom"))) == ""


def test_a_failure_has_its_place():
    assert place(failure(RuntimeError("boom"))) == "iteration 3, stage optimize"
    assert place(failure(RuntimeError("boom"), None)) == "before the first stage"
