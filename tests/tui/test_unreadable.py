"""Folders and files that cannot be read, and names that are none, given to the real program."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.presets.tiny import TINY, write
from tests.presets.untrained import untrained_run

ROOT = Path(__file__).parents[2]
NOT_ROOT = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


@pytest.fixture(autouse=True)
def _a_run_of_a_tiny_preset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    write(tmp_path, tiny=TINY)
    untrained_run(Path("runs/tiny/a"), "tiny")


def call(*args):
    """Run a command as somebody who may not read everything."""
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root may read everything here")
    before = NOT_ROOT if os.geteuid() == 0 else []
    command = [*before, sys.executable, "-m", "tui", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def refused(*args):
    ended = call(*args)
    assert (ended.returncode, ended.stdout) == (2, ""), ended.stderr
    assert "Traceback" not in ended.stderr
    (said,) = ended.stderr.splitlines()
    return said


@pytest.fixture
def closed():
    """Take the rights away from a path; they are given back."""
    paths = []

    def close(path):
        paths.append((Path(path), Path(path).stat().st_mode))
        Path(path).chmod(0)

    yield close
    for path, mode in paths:
        path.chmod(mode)


def test_a_run_whose_folder_may_not_be_read_is_named(closed):
    closed("runs/tiny/a")
    said = "runs/tiny/a/config.toml: Permission denied"
    assert refused("play", "runs/tiny/a", "--headless") == said
    assert refused("run", "tiny", "--resume", "a", "--headless") == said


def test_a_folder_of_runs_that_may_not_be_read_is_not_called_empty(closed):
    closed("runs")
    for args in (["runs"], ["runs", "--json"]):
        assert refused(*args) == "runs: cannot be read: Permission denied"


def test_a_preset_that_may_not_be_read_is_named(closed):
    closed("presets")
    assert refused("show", "presets/tiny.toml") == "presets/tiny.toml: Permission denied"


def test_runs_that_are_a_file_are_not_called_none():
    shutil.rmtree("runs")
    Path("runs").touch()
    assert refused("runs") == "runs: cannot be read: Not a directory"
    assert refused("export", "latest") == "runs: cannot be read: Not a directory"


def test_a_name_that_no_file_system_takes_is_shown_in_part():
    said = refused("play", "a" * 5000, "--headless")
    assert said == "a" * 200 + "...: File name too long"


def test_worlds_without_a_name_are_refused():
    assert "must be gymnasium:ID" in refused("run", "tiny", "--env", "", "--headless")


def test_a_module_that_leaves_the_program_is_named():
    Path("leaving.py").write_text("raise SystemExit(3)")
    said = refused("run", "--env", "leaving.py:make", "--headless")
    assert said == '--env "leaving.py:make": cannot be imported: SystemExit: 3'


def test_the_home_of_a_path_is_written_out_and_an_unknown_one_is_a_name():
    ended = call("export", "a", "--format", "jit", "--output=~/out/policy.pt")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert Path("home/out/policy.pt").is_file()
    assert not Path("~").exists()
    assert refused("play", "~nobody_of_this_name/a").startswith("~nobody_of_this_name/a: no run")
