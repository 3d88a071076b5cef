"""`ppo-tui doctor`: every check says what is there, and none of them hangs."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pytest
from typer.testing import CliRunner

from trainer.address import NAME
from trainer.rundir import RunDir, process_start
from tui import cli
from tui.commands import doctor as command
from tui.doctor import machine, runs, software, terminal
from tui.doctor.findings import Finding, Verdict, run_check

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(machine, "engines", lambda: [Finding("torch threads", "2")])


def by_name(findings):
    return {finding.name: finding for finding in findings}


def test_all_areas_are_reported_in_words(quick):
    result = CliRunner().invoke(cli.app, ["doctor"], prog_name="ppo-tui")
    assert result.exit_code == 0
    areas = [line for line in result.output.splitlines() if line and not line.startswith(" ")]
    assert areas[:5] == ["terminal", "packages", "machine", "extras", "runs"]
    for name in ("TERM", "torch", "mujoco", "textual", "cores", "memory", "Warp cache", "onnx"):
        assert name in result.output
    assert "\x1b" not in result.output


def test_json_has_the_same_findings(quick):
    result = CliRunner().invoke(cli.app, ["doctor", "--json"], prog_name="ppo-tui")
    found = json.loads(result.stdout)
    assert {"area", "name", "verdict", "value", "meaning", "remedy"} == set(found[0])
    assert {entry["area"] for entry in found} >= {"terminal", "machine"}


def test_a_problem_ends_with_1(monkeypatch):
    broken = Finding("disk", "full", verdict=Verdict.PROBLEM)
    monkeypatch.setattr(command, "_areas", lambda: [("machine", [(lambda: [broken], 1.0)])])
    result = CliRunner().invoke(cli.app, ["doctor"], prog_name="ppo-tui")
    assert result.exit_code == 1
    assert "1 problem, no notes" in result.output


def test_a_check_that_hangs_is_left_behind():
    def hangs():
        yield Finding("first", "there")
        time.sleep(30)

    started = time.monotonic()
    found = run_check("share", hangs, 0.1)
    assert time.monotonic() - started < 5
    assert found[-1].verdict is Verdict.PROBLEM
    assert "no answer within 0.1 s" in found[-1].value


def test_a_check_that_fails_is_a_note():
    found = run_check("load", lambda: 1 / 0, 5.0)
    assert found[0].verdict is Verdict.NOTE
    assert "ZeroDivisionError" in found[0].value


def test_the_first_lines_come_before_anything_heavy_is_imported():
    script = """
import sys
from tui.commands import doctor
from tui.doctor.findings import run_check
for area, checks in doctor._areas():
    for check, patience in checks:
        if check.__name__ != "engines":
            run_check(area, check, patience)
print(*[m for m in ("torch", "mujoco", "warp", "numpy") if m in sys.modules])"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    output = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True
    )
    assert output.stdout.strip() == ""


@pytest.mark.parametrize(
    ("environment", "name", "verdict", "value"),
    [
        ({"TERM": "dumb"}, "TERM", "note", "'dumb'"),
        ({"TERM": ""}, "TERM", "note", "unset"),
        ({"TERM": "xterm-256color"}, "colours", "ok", "256"),
        ({"TERM": "screen"}, "colours", "note", "16"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "colours", "ok", "16 million"),
        ({"NO_COLOR": "1"}, "colours", "note", "none"),
        ({"LC_ALL": "C"}, "characters", "note", "ASCII"),
        ({"LC_ALL": "C.UTF-8", "TERM": "linux"}, "characters", "ok", "block"),
    ],
)
def test_what_a_terminal_says_of_itself(monkeypatch, environment, name, verdict, value):
    for variable in ("NO_COLOR", "COLORTERM"):
        monkeypatch.delenv(variable, raising=False)
    for variable, text in environment.items():
        monkeypatch.setenv(variable, text)
    found = by_name(terminal.terminal())[name]
    assert found.verdict == verdict
    assert value in found.value


def test_multiplexers_and_connections_are_named(monkeypatch):
    for variable in ("TMUX", "STY", "SSH_TTY"):
        monkeypatch.setenv(variable, "x")
    monkeypatch.setattr(terminal, "_ancestor", lambda name: name == "mosh-server")
    assert {"tmux", "screen", "mosh", "SSH"} <= set(by_name(terminal.between()))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"\x1b[?2026;2$y\x1b[?62;c", "synchronized output yes"),
        (b"\x1b[?2026;0$y\x1b[?62;c", "synchronized output no"),
        (b"\x1b[?1;2c", "synchronized output no"),
        (b"", "synchronized output no answer"),
    ],
)
def test_a_terminal_is_asked_for_synchronized_output_and_need_not_answer(answer, said):
    script = """
from tui.doctor.terminal import between
print(*[f"{found.name} {found.value};" for found in between()])"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
    process = pexpect.spawn(sys.executable, ["-c", script], env=environment, timeout=20)
    process.expect_exact(terminal.QUESTION)
    process.send(answer)
    process.expect_exact(f"{said};")
    process.expect(pexpect.EOF)
    assert b"2026" not in process.before  # the answer is nobody's input


def test_a_package_that_is_too_old_is_a_problem(monkeypatch):
    real = software.importlib.metadata.version
    monkeypatch.setattr(
        software.importlib.metadata,
        "version",
        lambda name: "3.9.0" if name == "mujoco" else real(name),
    )
    found = by_name(software.python())["mujoco"]
    assert found.verdict is Verdict.PROBLEM
    assert ">=4.0" in found.meaning
    assert "pip install 'mujoco" in found.remedy


def test_a_container_s_quota_is_named(monkeypatch):
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 64)
    monkeypatch.setattr(machine, "cgroup_cores", lambda: 1.5)
    monkeypatch.setattr(machine, "usable_cores", lambda: 2)
    assert by_name(machine.processors())["cores"].value == "2 of 64 (1.5 by the container's quota)"


@pytest.mark.parametrize(
    ("probe", "name", "verdict"),
    [
        ({"reason": "no NVIDIA driver", "driver": None}, "GPU", "note"),
        ({"reason": "torch finds no GPU it can use", "driver": "550.1"}, "GPU", "problem"),
        ({"reason": "CUDA_VISIBLE_DEVICES hides every GPU", "driver": "550.1"}, "GPU", "note"),
        (
            {"cards": [{"name": "H100", "free": 8e10, "total": 8.5e10}], "driver": "550.1"},
            "H100",
            "ok",
        ),
        ({"threads": 4096}, "torch threads", "note"),
    ],
)
def test_what_torch_tells(probe, name, verdict):
    whole = {"threads": 1, "cuda": "12.8", "driver": None, "cards": [], "reason": None, **probe}
    assert by_name(machine._told(whole))[name].verdict == verdict


@pytest.mark.parametrize("fault", ["hangs", "breaks"])
def test_a_torch_that_cannot_be_imported_is_a_problem(tmp_path, monkeypatch, fault):
    text = "import time; time.sleep(30)" if fault == "hangs" else "raise ImportError('libcudnn')"
    (tmp_path / "torch.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    monkeypatch.setattr(machine, "PROBE_TIME", 1.0 if fault == "hangs" else 20.0)
    (found,) = machine.engines()
    assert found.verdict is Verdict.PROBLEM
    assert ("not imported within" if fault == "hangs" else "libcudnn") in found.value


def test_the_warp_cache_follows_its_variable_and_is_added_up(tmp_path, monkeypatch):
    monkeypatch.setenv("WARP_CACHE_PATH", str(tmp_path / "cache"))
    assert "empty" in by_name(machine.warp_cache())["Warp cache"].meaning
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/kernel.bin").write_bytes(b"x" * 2000)
    assert "2 kB" in by_name(machine.warp_cache())["Warp cache"].value


def run_in(name, pid):
    run = RunDir.create(Path("runs/toy", name), "")
    run.write_status({"state": "running", "pid": pid, "pid_started": process_start(pid)})
    return run


def test_live_runs_are_named_with_how_to_watch_them():
    run = run_in("a", os.getpid())
    (found,) = runs.live_runs()
    assert "no socket" in found.value
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(run.path / NAME))
        (run.path / NAME).chmod(0o600)
        (found,) = runs.live_runs()
        assert found.verdict is Verdict.OK
        assert "ppo-tui watch toy/a" in found.meaning
        (run.path / NAME).chmod(0o666)
        assert next(runs.live_runs()).verdict is Verdict.PROBLEM


def test_a_run_whose_process_was_killed_is_a_note():
    run = run_in("b", 2**22 + 1)
    (run.path / NAME).touch()
    assert next(runs.live_runs()).verdict is Verdict.NOTE
