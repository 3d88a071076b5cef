import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from trainer import checkpoint
from trainer.checkpoint import CheckpointError, SchemaError

ROOT = Path(__file__).parents[2]


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


@pytest.mark.parametrize(("schema", "age"), [(2, "a newer"), (0, "an older")])
def test_another_schema_is_refused_with_both_versions(tmp_path, schema, age):
    path = tmp_path / "model_1.pt"
    torch.save({"schema_version": schema}, path)
    with pytest.raises(SchemaError, match=f"{age} version .* schema {schema}; .* reads schema 1"):
        checkpoint.load(path)


@pytest.mark.parametrize("content", [{"weights": 1}, [1], {"schema_version": "1"}])
def test_a_file_of_torch_that_is_no_checkpoint_is_refused(tmp_path, content):
    torch.save(content, tmp_path / "model_1.pt")
    with pytest.raises(CheckpointError, match="it names no schema"):
        checkpoint.load(tmp_path / "model_1.pt")


def test_the_newest_whole_checkpoint_is_taken_and_the_damaged_ones_are_named(tmp_path):
    for number in (10, 20, 30):
        checkpoint.save(checkpoint.path_for(tmp_path, number), {"x": torch.full((999,), number)})
    half = tmp_path / "model_20.pt"
    half.write_bytes(half.read_bytes()[: half.stat().st_size // 2])
    (tmp_path / "model_30.pt").write_bytes(b"")
    newest = checkpoint.newest_readable(tmp_path)
    assert newest.path == tmp_path / "model_10.pt"
    assert newest.state["x"][0] == 10
    empty, cut = newest.unreadable
    assert "model_30.pt: not readable as a checkpoint: it is cut short" in empty
    assert "model_20.pt: not readable as a checkpoint: it is cut short" in cut


def test_a_folder_that_cannot_be_read_is_not_taken_for_an_empty_one(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="file: cannot be read: Not a directory"):
        checkpoint.newest_readable(tmp_path / "file")

    def forbidden(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(os, "listdir", forbidden)
    with pytest.raises(CheckpointError, match="cannot be read: Permission denied"):
        checkpoint.newest_readable(tmp_path)
    monkeypatch.undo()
    assert checkpoint.newest_readable(tmp_path / "nowhere") == (None, {}, ())


def test_where_none_is_whole_none_is_taken(tmp_path):
    assert checkpoint.newest_readable(tmp_path) == (None, {}, ())
    (tmp_path / "model_3.pt").write_bytes(b"PK")
    newest = checkpoint.newest_readable(tmp_path)
    assert newest.path is None
    assert len(newest.unreadable) == 1


def test_a_checkpoint_of_a_newer_program_is_not_passed_over_for_an_older_one(tmp_path):
    checkpoint.save(tmp_path / "model_10.pt", {"x": 1})
    torch.save({"schema_version": 2}, tmp_path / "model_20.pt")
    with pytest.raises(SchemaError, match=r"model_20\.pt"):
        checkpoint.newest_readable(tmp_path)


KILLED = """
import os, random, signal, sys, time
from pathlib import Path
import torch
from trainer import checkpoint

folder, random = Path(sys.argv[1]), random.Random(1)

def state(number):
    return {"number": number, "x": torch.full((50_000,), float(number))}

checkpoint.save(checkpoint.path_for(folder, 1), state(1))
newest, strays = 1, 0
for _ in range(50):
    child = os.fork()
    if child == 0:
        number = newest
        while True:
            number += 1
            checkpoint.save(checkpoint.path_for(folder, number), state(number))
    time.sleep(random.uniform(0.0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    path, found, unreadable = checkpoint.newest_readable(folder)
    assert unreadable == (), unreadable
    assert path == checkpoint.path_for(folder, found["number"])
    assert found["number"] >= newest and bool((found["x"] == found["number"]).all())
    newest = found["number"]
    left = [p for p in folder.iterdir() if p.suffix != ".pt"]
    assert len(left) <= 1, left
    strays += len(left)
    for path in (*left, *checkpoint.saved(folder)[:-1]):
        path.unlink()
print(newest, strays)
"""


def test_killed_fifty_times_while_saving_the_newest_checkpoint_is_always_whole(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    newest, strays = map(int, done.stdout.split())
    assert newest > 1
    assert strays > 0  # some kills did hit a save


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


def test_what_the_disk_says_is_not_hidden_by_torch(tmp_path, small_files):
    path = tmp_path / "model_1.pt"
    checkpoint.save(path, {"x": 1})
    with pytest.raises(OSError, match="File too large") as error:
        checkpoint.save(path, {"x": torch.zeros(100_000)})
    assert error.value.errno == errno.EFBIG
    assert checkpoint.load(path)["x"] == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["model_1.pt"]


def test_saved_lists_checkpoints_by_number_and_nothing_else(tmp_path):
    for name in ("model_100.pt", "model_20.pt", ".model_3.pt.1.tmp", "model_x.pt", "notes.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in checkpoint.saved(tmp_path)] == ["model_20.pt", "model_100.pt"]
