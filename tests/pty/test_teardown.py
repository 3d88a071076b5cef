"""Nothing that a test starts is left behind, however far it has gone from its parent."""

import os
import subprocess

from tests.pty.conftest import processes_with, wait_until


def test_a_process_that_has_left_its_parent_and_its_terminal_is_found():
    mark = f"PPO_TUI_TEST={os.environ['PPO_TUI_TEST']}"
    subprocess.run(["sh", "-c", "setsid sleep 60 >/dev/null 2>&1 &"], check=True)
    wait_until(lambda: len(list(processes_with(mark))) == 1, 5, "one process")
    assert not list(processes_with(mark + "0"))
