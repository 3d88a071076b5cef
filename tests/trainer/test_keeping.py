import json
import math

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from trainer import checkpoint
from trainer.config import TrainerConfig
from trainer.keeping import Best, CheckpointKeeper, copied, dispensable
from trainer.rundir import RunDir


@pytest.mark.parametrize(
    ("keep", "deleted"), [(-1, []), (1, [10, 30, 40]), (3, [10]), (5, []), (9, [])]
)
def test_the_newest_and_the_spared_stay(keep, deleted):
    assert dispensable([50, 10, 40, 20, 30], keep, {20}) == deleted


@pytest.mark.parametrize("keep", [0, -2])
def test_keeping_none_is_refused(keep):
    with pytest.raises(ValidationError, match=f"must be -1, .* or at least 1, not {keep}"):
        TrainerConfig(keep_checkpoints=keep)


@pytest.fixture
def folder(tmp_path):
    return RunDir.create(tmp_path / "run", "")


def saves(keeper, rewards):
    """Save after 10, 20, ... iterations with these mean rewards."""
    start = keeper.newest
    for number, reward in enumerate(rewards, 1):
        keeper.save({"completed_iterations": start + 10 * number, "mean_reward": reward})


def kept(run_dir):
    return checkpoint.saved_iterations(run_dir.checkpoints)


@pytest.mark.parametrize(
    ("keep", "left"),
    [(-1, [10, 20, 30, 40, 50]), (1, [20, 50]), (3, [20, 30, 40, 50])],
)
def test_five_saves_keep_the_newest_and_the_best_compared_as_numbers(folder, keep, left):
    keeper = CheckpointKeeper(folder, keep, lambda kind, text: None)
    saves(keeper, [math.nan, 10.5, 9.75, -20.0, 9.9])  # as texts 9.9 would win
    assert keeper.best == Best(20, 10.5)
    assert kept(folder) == left


def test_the_one_resumed_from_and_damaged_newer_ones_neither_go_nor_count(folder):
    before = CheckpointKeeper(folder, -1, lambda kind, text: None)
    saves(before, [3.0, 1.0, 1.0])
    (folder.checkpoints / "model_90.pt").write_bytes(b"cut")
    keeper = CheckpointKeeper(folder, 1, lambda kind, text: None, resumed_from=20)
    keeper.recall({10: 3.0, 20: 1.0, 90: 100.0})
    assert keeper.best == Best(10, 3.0)
    saves(keeper, [1.0, 1.0, 1.0])
    assert kept(folder) == [10, 20, 50, 90]


def test_what_is_on_disk_already_is_not_written_again(folder):
    told = []
    keeper = CheckpointKeeper(folder, 1, lambda *event: told.append(event), resumed_from=20)
    for number in (0, 20):
        keeper.save({"completed_iterations": number, "mean_reward": 1.0})
    assert told == []
    assert kept(folder) == []


def test_one_that_cannot_be_written_deletes_nothing(folder, monkeypatch):
    told = []
    keeper = CheckpointKeeper(folder, 1, lambda *event: told.append(event))
    saves(keeper, [1.0])

    def full(path, state):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save", full)
    saves(keeper, [2.0])
    assert told[-1][0] == "alert"
    assert "model_20.pt not saved" in told[-1][1]
    assert keeper.newest == 10
    assert keeper.best == Best(10, 1.0)
    assert kept(folder) == [10]
    assert json.dumps(keeper.best._asdict()) == '{"iteration": 10, "mean_reward": 1.0}'


def test_numpys_numbers_and_paths_are_kept_as_what_is_read_back_without_code(tmp_path):
    """A person's own term may leave any of them in the state, and torch would save them all."""
    state = {
        "weights": {"alive": np.float64(2.0), np.str_("near"): np.float32(0.5)},
        "counts": [np.int64(3), np.bool_(True), (1, 2.5, None, "x")],
        "array": np.arange(3.0),
        "from": tmp_path / "x",
        "tensor": torch.ones(2),
    }
    checkpoint.save(tmp_path / "model_1.pt", copied(state))
    loaded = checkpoint.load(tmp_path / "model_1.pt")
    assert loaded["weights"] == {"alive": 2.0, "near": 0.5}
    assert [type(value) for value in loaded["weights"].values()] == [float, float]
    assert loaded["counts"] == [3, True, [1, 2.5, None, "x"]]
    assert loaded["array"].tolist() == [0.0, 1.0, 2.0]
    assert loaded["from"] == str(tmp_path / "x")


@pytest.mark.parametrize("value", [{1, 2}, object(), np.array([object()]), 1j])
def test_what_no_checkpoint_can_hold_is_named_with_its_place(value):
    with pytest.raises(TypeError, match=r"^state\.env\.mine\[1\] is of the type \w+, which a"):
        copied({"env": {"mine": [0, value]}})
