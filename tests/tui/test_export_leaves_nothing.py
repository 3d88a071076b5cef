"""An export that fails leaves nothing behind, neither a file nor a folder: real processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.presets.tiny import TINY, write
from tests.presets.untrained import untrained_run

ROOT = Path(__file__).parents[2]
MAIN = "import sys; {first}; from tui.cli import main; main()"
WITHOUT_ONNX = "sys.modules['onnx'] = None"
NEVER_EQUAL = "import trainer.export; trainer.export.TOLERANCE = -1.0"


@pytest.fixture(autouse=True)
def _a_run_of_a_tiny_preset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    write(tmp_path, tiny=TINY)
    untrained_run(Path("runs/tiny/a"), "tiny")


def export(*args, first="pass", limit=""):
    """Export in a process of its own, after some Python and under a shell's limit."""
    program = [sys.executable, "-c", MAIN.format(first=first), "export", "a", *args]
    command = ["sh", "-c", f'{limit} exec "$@"', "sh", *program]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("options", "surroundings", "said"),
    [
        (["--output", "new/er/policy"], {"first": WITHOUT_ONNX}, "needs the package onnx"),
        (["--format", "jit"], {"first": NEVER_EQUAL}, "not written: the file's actions differ"),
        (
            ["--format", "jit", "--output", "mine/new/policy"],
            {"limit": "ulimit -f 2;"},
            "cannot be written: File too large",
        ),
        (["--format", "rsl_rl"], {"limit": "ulimit -f 2;"}, "cannot be written: File too large"),
    ],
)
def test_a_failed_export_leaves_the_disk_as_it_was(options, surroundings, said):
    Path("mine").mkdir()
    before = sorted(Path().rglob("*"))
    ended = export(*options, **surroundings)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert sorted(Path().rglob("*")) == before


def test_a_name_that_is_not_utf_8_is_a_place_like_any_other():
    for name, options in ((b"b\xff.onnx", []), (b"b\xff.pt", ["--format", "jit"])):
        ended = export(*options, "--output", os.fsdecode(name))
        assert (ended.returncode, ended.stderr) == (0, "")
        assert os.path.getsize(name) > 1000
