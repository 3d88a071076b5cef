"""Nothing that a test starts is left behind, however far it has gone from its parent."""

import subprocess
import sys
import time
from pathlib import Path

from tests import leftovers

ROOT = Path(__file__).parents[1]
FILE = """
import subprocess

def test_that_leaves_a_process():
    subprocess.run(["sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & echo $! >pid"], check=True)
"""


def test_a_process_that_has_left_its_parent_and_its_terminal_is_found_and_killed():
    subprocess.run(["sh", "-c", "setsid sleep 600 >/dev/null 2>&1 &"], check=True)
    deadline = time.monotonic() + 5
    while not list(leftovers.processes_with(leftovers.MARK)):
        assert time.monotonic() < deadline
    assert not list(leftovers.processes_with(leftovers.MARK + "0"))
    leftovers.kill_all(leftovers.MARK)
    assert not list(leftovers.processes_with(leftovers.MARK))


def test_what_the_tests_of_a_file_have_started_ends_with_the_file(tmp_path):
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    (tmp_path / "test_file.py").write_text(FILE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-c", "/dev/null"]
    subprocess.run(
        [*command, "--rootdir", ".", "-o", f"pythonpath={ROOT}"], cwd=tmp_path, check=True
    )
    command = Path("/proc", (tmp_path / "pid").read_text().strip(), "cmdline")
    assert not command.exists() or command.read_bytes() == b""  # killed, and perhaps not buried
