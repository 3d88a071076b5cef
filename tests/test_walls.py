"""Who may import whom, and what must not be imported before it is needed."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "mujoco", "mujoco_warp", "warp")
SCREEN = ("textual", "rich", "typer")
FORBIDDEN = {
    "trainer": ("sim", "presets", "tui", *SCREEN),
    "sim": ("trainer", "presets", "tui", *SCREEN),
    "presets": ("tui", *SCREEN),
    "tui": ("sim",),
}
LIGHT = (
    "tui.cli",
    "tui.app",
    "tui.screens.menu",
    "presets.build",
    "presets.loader",
    "sim.catalog",
    "sim.config",
    "trainer.config",
    "trainer.env",
    "trainer.session",
    "trainer.stages",
    "trainer.telemetry",
)
TOUCHES_CUDA = {
    # in the session's thread
    "sim/physics/gpu.py",
    "sim/physics/graph.py",
    "trainer/distributed.py",
    "trainer/views.py",
    # before there is a session
    "presets/build.py",
    "presets/memory.py",
    # in a process of its own
    "tui/doctor/probe.py",
}
"""Who may call `torch.cuda`: while physics is recorded as a graph, no other thread may (D19)."""
CPU_SECONDS = 0.5
ATTEMPTS = 5  # the fastest counts: other processes make CPU time longer, never shorter
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)  # a person's second start finds compiled files


def imports(path):
    """Names of the packages that a file imports anywhere, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("room", FORBIDDEN)
def test_a_room_imports_only_what_lies_below_it(room):
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    crossing = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files
        for name in imports(path)
        if name in FORBIDDEN[room]
    ]
    assert crossing == []


def touches_cuda(path):
    """Whether a file reads the attribute `cuda` of anything, or names `torch.cuda`."""
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return any(
        (isinstance(node, ast.Attribute) and node.attr in ("cuda", "cudart"))
        or (isinstance(node, ast.Constant) and node.value == "torch.cuda")
        or (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch.cuda"))
        for node in tree
    )


def test_nobody_touches_cuda_beside_the_sessions_thread():
    rooms = [path for room in FORBIDDEN for path in (ROOT / room).rglob("*.py")]
    assert {str(path.relative_to(ROOT)) for path in rooms if touches_cuda(path)} == TOUCHES_CUDA


def test_a_dashboard_with_all_its_views_needs_no_torch():
    """What looks at a run ten times a second has nothing to touch a GPU with."""
    code = """
import asyncio
from tests.tui.fake_session import FakeSession
from tui.app import DashboardApp
from tui.screens.dashboard import VIEWS

class Session(FakeSession):
    def start(self): ...
    def join(self, timeout=None): return False

async def look_around():
    app = DashboardApp(Session(live=True), fps=50)
    async with app.run_test(size=(160, 50)) as pilot:
        for number in range(1, len(VIEWS) + 1):
            await pilot.press(str(number))
            await pilot.pause(0.1)
        await pilot.press("question_mark")  # no trace: the fake session asks torch for it
        await pilot.pause(0.1)

asyncio.run(look_around())"""
    assert after(code, *HEAVY) == []


def run_python(script):
    """Run a script in a fresh interpreter; returns what it prints, and the CPU seconds it took."""
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
        text=True,
    )
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return output, usage.ru_utime + usage.ru_stime


def after(code, *suspects):
    """Which of the suspects are imported by some code."""
    script = f"import sys\n{code}\nprint(*[m for m in {suspects!r} if m in sys.modules])"
    return run_python(script)[0].splitlines()[-1].split()


@pytest.mark.parametrize("module", LIGHT)
def test_a_light_module_imports_no_engine(module):
    assert after(f"import {module}", *HEAVY) == []


def test_help_imports_no_more_than_it_shows():
    code = "import tui.cli\ntry: tui.cli.app(['--help'])\nexcept SystemExit: pass"
    assert after(code, *HEAVY, "numpy", "textual", "rich", "pydantic") == []


def test_presets_are_read_and_checked_without_an_engine():
    code = """
from presets.build import resolve_device
from presets.files import names
from presets.loader import load, to_toml
[to_toml(load(name, (), resolve_device("cpu").kind).preset) for name in names()]"""
    assert after(code, *HEAVY, "textual", "rich") == []


@pytest.mark.parametrize("arguments", [["--help"], ["presets"]])
def test_a_command_is_there_at_once(arguments):
    script = f"import sys, tui.cli\nsys.argv[1:] = {arguments}\ntui.cli.main()"
    assert any(run_python(script)[1] < CPU_SECONDS for _ in range(ATTEMPTS))


def open_menu():
    """Open the real menu in a terminal; returns the CPU seconds it took, and its memory map."""
    menu = pexpect.spawn(
        sys.executable, ["-m", "tui"], cwd=ROOT, env=ENVIRONMENT, dimensions=(24, 80), timeout=20
    )
    menu.expect("go2_flat")
    ticks = Path(f"/proc/{menu.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    mapped = Path(f"/proc/{menu.pid}/maps").read_text()
    menu.send("q")
    menu.expect(pexpect.EOF)
    menu.close()
    assert menu.exitstatus == 0
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), mapped


def test_the_menu_is_there_at_once_and_without_an_engine():
    spent, mapped = open_menu()
    assert [name for name in (*HEAVY, "numpy") if f"/{name}" in mapped] == []
    assert spent < CPU_SECONDS or any(open_menu()[0] < CPU_SECONDS for _ in range(ATTEMPTS - 1))
