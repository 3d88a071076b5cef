"""A run's folder that somebody deletes, moves, or that could not be made whole."""

import os
import resource
import shutil
from pathlib import Path

import pytest

from tests.tui.test_headless import CONFIG, session
from trainer import checkpoint, claim
from trainer.rundir import RunDir, RunDirError


def delete_after(run, iteration, delete):
    """Have something done behind an iteration, in the session's own thread."""
    complete = run._complete_iteration

    def completed():
        complete()
        if run._trainer.completed_iterations == iteration:
            delete()

    run._complete_iteration = completed


@pytest.mark.parametrize("how", ["deleted", "moved"])
def test_what_is_learnt_afterwards_is_a_run_again(tmp_path, how):
    folder = tmp_path / "run"
    run = session(folder)
    run.run_dir._write_config('name = "toy"\n')
    gone = shutil.rmtree if how == "deleted" else lambda path: path.rename(tmp_path / "elsewhere")
    delete_after(run, 15, lambda: gone(folder))
    run.start()
    assert run.join(60)
    assert run.snapshot().failure is None
    assert (folder / "config.toml").read_text() == 'name = "toy"\n'
    assert (folder / "info.json").is_file()
    newest = checkpoint.newest_readable(folder / "checkpoints")
    assert newest.state["completed_iterations"] == CONFIG.num_iterations
    _, events = run.events.since(0)
    told = [event.text for event in events if "had gone" in event.text]
    assert told == [f"{folder}: config.toml, info.json had gone, written again; training goes on"]


def test_a_term_that_changes_the_working_directory_moves_no_run(tmp_path, monkeypatch):
    home, away = tmp_path / "home", tmp_path / "away"
    home.mkdir()
    away.mkdir()
    monkeypatch.chdir(home)
    run = session(Path("run"))
    delete_after(run, 15, lambda: os.chdir(away))
    run.start()
    assert run.join(60)
    assert run.snapshot().failure is None
    assert list(away.iterdir()) == []
    assert len((home / "run/metrics.jsonl").read_text().splitlines()) == CONFIG.num_iterations
    newest = checkpoint.newest_readable(home / "run/checkpoints")
    assert newest.state["completed_iterations"] == CONFIG.num_iterations
    _, events = run.events.since(0)
    assert not [event for event in events if event.kind == "alert"]


def test_a_folder_that_came_back_is_claimed_again(tmp_path):
    run_dir = RunDir.create(tmp_path / "run", "x = 1\n")
    shutil.rmtree(run_dir.path)
    run_dir.restore()
    assert (run_dir.path / claim.NAME).is_file()
    assert run_dir.config.read_text() == "x = 1\n"
    run_dir.release()


@pytest.mark.parametrize("made_before", [False, True])
def test_a_folder_that_a_full_disk_leaves_half_made_goes_again(tmp_path, made_before):
    path = tmp_path / "runs/toy/a"
    if made_before:
        path.mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(RunDirError, match="cannot be written: File too large"):
            RunDir.create(path, "x" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert sorted(tmp_path.rglob("*")) == before
    RunDir.create(path, "x = 1\n").release()
    assert Path(path, "config.toml").is_file()
