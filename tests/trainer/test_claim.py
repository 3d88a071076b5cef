"""No two processes train into one folder, however close together they begin."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.trainer.test_resume import finish, new
from trainer import claim
from trainer.claim import ClaimedError
from trainer.rundir import RunDir, RunDirError, default_path

ROOT = Path(__file__).parents[2]
OTHER = """
import sys, time
from pathlib import Path
from trainer import claim
claim.claim(Path(sys.argv[1]))
print("mine", flush=True)
time.sleep(60)
"""
TRYING = """
import sys
from pathlib import Path
from trainer.claim import ClaimedError, claim
try:
    claim(Path(sys.argv[1]))
    print("free")
except ClaimedError as error:
    print(error)
"""


def tried(folder):
    """What another process is told that wants a folder."""
    command = [sys.executable, "-c", TRYING, str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def other(tmp_path):
    """Another process that has claimed a folder."""
    command = [sys.executable, "-c", OTHER, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "mine\n"
        yield process
        process.kill()


def test_a_claimed_folder_is_refused_with_who_has_it_and_is_free_when_that_is_killed(
    tmp_path, other
):
    for refused in (
        lambda: claim.claim(tmp_path),
        lambda: RunDir.create(tmp_path, ""),
        lambda: RunDir.reopen(tmp_path, "", 0),
    ):
        with pytest.raises(
            (ClaimedError, RunDirError), match=f"trained right now by process {other.pid}; stop"
        ):
            refused()
    assert [path.name for path in tmp_path.iterdir()] == [claim.NAME]
    other.send_signal(signal.SIGKILL)
    other.wait()
    RunDir.create(tmp_path, "").release()


def test_one_claim_of_a_process_is_enough_and_ends_with_its_session(tmp_path):
    session = new(tmp_path / "run", 2)
    RunDir.reopen(tmp_path / "run", "", 0)
    assert "is being trained right now by process" in tried(tmp_path / "run")
    finish(session)
    assert tried(tmp_path / "run") == "free\n"


def test_a_folder_of_someone_else_gets_no_file_of_ours(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RunDirError, match=r"thesis\.tex"):
        RunDir.create(tmp_path, "")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_where_the_file_system_knows_no_locks_training_goes_on(tmp_path, monkeypatch):
    def none(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(claim.fcntl, "lockf", none)
    RunDir.create(tmp_path / "run", "").release()


def test_runs_that_begin_in_one_second_have_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor(8) as threads:
        paths = list(threads.map(lambda _: default_path("toy", ""), range(16)))
    assert len(set(paths)) == 16
    assert all(path.is_dir() for path in paths)
