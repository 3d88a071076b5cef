import os

import numpy as np
import pytest
import torch

from trainer import checkpoint
from trainer.checkpoint import CheckpointError


def test_what_was_saved_is_loaded_without_running_code(tmp_path):
    state = {"tensor": torch.arange(3), "nested": {"list": [1, 2.5, "x", None, True]}}
    path = checkpoint.path_for(tmp_path / "checkpoints", 50)
    checkpoint.save(path, state)
    assert path.name == "model_50.pt"
    loaded = checkpoint.load(path)
    assert torch.equal(loaded["tensor"], state["tensor"])
    assert loaded["nested"] == state["nested"]


def test_a_pickle_that_would_run_code_is_refused(tmp_path):
    path = tmp_path / "model_1.pt"
    torch.save({"schema_version": 1, "x": np.float64(1.0)}, path)
    with pytest.raises(CheckpointError, match="not readable"):
        checkpoint.load(path)


@pytest.mark.parametrize("keep", [0, 10, 0.5])
def test_a_truncated_file_is_named_with_the_reason(tmp_path, keep):
    path = tmp_path / "model_1.pt"
    checkpoint.save(path, {"x": torch.zeros(1000)})
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(CheckpointError, match=r"model_1\.pt: not readable"):
        checkpoint.load(path)


def test_another_schema_is_refused_with_both_versions(tmp_path):
    path = tmp_path / "model_1.pt"
    torch.save({"schema_version": 99}, path)
    with pytest.raises(CheckpointError, match=r"schema 99, this program reads 1"):
        checkpoint.load(path)


def test_a_save_that_fails_leaves_the_last_good_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "model_1.pt"
    checkpoint.save(path, {"x": 1})

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        checkpoint.save(path, {"x": 2})
    assert checkpoint.load(path)["x"] == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["model_1.pt"]


def test_saved_lists_checkpoints_by_number_and_nothing_else(tmp_path):
    for name in ("model_100.pt", "model_20.pt", ".model_3.pt.1.tmp", "model_x.pt", "notes.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in checkpoint.saved(tmp_path)] == ["model_20.pt", "model_100.pt"]
