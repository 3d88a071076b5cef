import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pexpect
import pytest
import torch
from typer.testing import CliRunner

import presets.build
import tui.app
import tui.headless
from tests.presets.tiny import TINY, write
from tui import cli
from tui.commands import run

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "tui"]
ESC = b"\x1b"


@pytest.fixture(autouse=True)
def _a_folder_with_a_tiny_preset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(presets.build, "_has_driver", lambda: False)
    write(tmp_path, tiny=TINY)


def call(*args):
    """Run a command in this process."""
    return CliRunner().invoke(cli.app, list(args), prog_name="ppo-tui")


def train(*args, **more):
    """Train the tiny preset in a process of its own, its output in pipes."""
    command = [*COMMAND, "run", *args]
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, **more)


def metrics(run_dir):
    """Read all lines of a run, times left out."""
    lines = [json.loads(line) for line in (Path(run_dir) / "metrics.jsonl").open()]
    timed = re.compile(r"elapsed|Perf/")
    return [{tag: v for tag, v in line.items() if not timed.match(tag)} for line in lines]


def weights(run_dir):
    newest = max(
        (Path(run_dir) / "checkpoints").glob("*.pt"), key=lambda path: path.stat().st_mtime
    )
    return torch.load(newest, weights_only=True)


# Bad input.


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["run", "tinyy"], 'no preset "tinyy"; did you mean tiny?\npresets: '),
        (["run", "veloctiy-flat"], "presets: "),
        (["run", ""], 'no preset ""'),
        (["run"], "a run with --resume\npresets: "),
        (
            ["run", "tiny", "--num-envs", "16", "--num-envs=32"],
            "--num-envs is given 2 times (16, 32); give it once",
        ),
        (["run", "tiny", "--seed", "1.5"], "--seed 1.5: must be a whole number"),
        (["run", "tiny", "--seed=many"], "--seed many: must be a whole number"),
        (["trian"], "commands: run, presets, show"),
        (["shw"], 'no command "shw"; did you mean ppo-tui show?'),
        (["go2_flta"], "did you mean ppo-tui run go2_flat?"),
        (["runs", "list"], 'no command "runs list"\nto list the runs: ppo-tui runs, '),
        (["runs", "compar", "a"], 'no command "runs compar"; did you mean compare?'),
        (
            ["runs", "--preset", "a", "--preset=b"],
            "--preset is given 2 times (a, b); give it once",
        ),
        (["run", "tiny", "--headles"], "--headless"),
        (["run", "tiny", "--num-envs", "many"], "--num-envs"),
        (["run", "tiny", "--num-envs", "0"], "--num-envs 0: must be at least 1"),
        (["run", "tiny", "--set", "trainer.gama=.9"], "did you mean trainer.gamma?"),
        (["run", "tiny", "--set", "trainer.desired_kl=nan"], "must be a finite number"),
        (
            ["run", "tiny", "--num-envs", "64", "--set", "env.num_envs=128"],
            "--set env.num_envs=128 and --num-envs 64 disagree; give one of them",
        ),
        (["run", "tiny", "--device", "gpu"], "--device gpu: allowed: auto, cpu, cuda, cuda:i"),
        (
            ["run", "tiny", "--device", "cuda"],
            "--device cuda: no NVIDIA driver; use --device cpu",
        ),
        (["run", "tiny", "--name", "../up"], "--name ../up: must be"),
        (["run", "tiny", "--name", "a", "--run-dir", "b"], "give one of them"),
        (["show", "tinyy"], "did you mean tiny?"),
        (["show", "tiny", "--terms", "mine.py"], "mine.py: cannot be read: No such file"),
        (["run", "tiny", "--terms", "presets/tiny.toml"], "tiny.toml: line 20: not Python"),
        (["run", "tiny", "--resume", "latest"], "no run in runs/tiny has a readable checkpoint"),
        (["run", "tiny", "--resume", "x"], 'no run "x"; runs/tiny holds none'),
        (["run", "tiny", "--resume", "x", "--run-dir", "y"], "leave out --run-dir y"),
        (["run", "tiny", "--resume", "x", "--name", "y"], "leave out --name y"),
    ],
)
def test_bad_input_is_refused_in_a_few_lines_and_leaves_nothing_on_disk(args, said):
    before = sorted(Path().rglob("*"))
    result = call(*args)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) < 10
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize(
    "args",
    [
        ["run", "ti\x1b[2Jny"],
        ["run", "tiny", "--device", "\x1b[2J"],
        ["run", "tiny", "--set", "trainer.\x1b[2J"],
        ["run", "tiny", "--resume", "\x1b[2J"],
        ["run", "tiny", "--name", "\x1b[2J"],
    ],
)
def test_a_terminal_obeys_nothing_of_what_was_typed(args):
    result = call(*args)
    assert result.exit_code == 2
    assert "\\x1b[2J" in result.stderr
    assert "\x1b" not in result.stderr


def test_a_run_dir_that_holds_another_run_is_refused_untouched():
    Path("taken").mkdir()
    Path("taken/config.toml").write_text("precious")
    result = call("run", "tiny", "--run-dir", "taken")
    assert result.exit_code == 2
    assert "taken: holds another run already" in result.stderr
    assert [(p.name, p.read_text()) for p in Path("taken").iterdir()] == [
        ("config.toml", "precious")
    ]


@pytest.mark.parametrize("path", ["a_file", "a_file/below", "/proc/nowhere"])
def test_a_run_dir_that_cannot_be_made_is_refused(path):
    Path("a_file").touch()
    result = call("run", "tiny", "--run-dir", path)
    assert result.exit_code == 2
    assert path in result.stderr


# Looking at presets.


def test_presets_are_listed_with_what_they_train():
    result = call("presets")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    ours = {path.stem for path in (ROOT / "presets").glob("*.toml")}
    assert [line.split()[0] for line in lines] == sorted({"tiny", *ours})
    assert lines[-1].split(maxsplit=1)[1] == "A pole on a cart, for tests  (presets/tiny.toml)"


def test_a_description_of_two_lines_and_an_escape_sequence_stays_in_its_line():
    write(Path(), odd='extends = "tiny"\ndescription = "one\\u001b[2J\\ntwo"')
    result = call("presets")
    assert "one [2J two  (presets/odd.toml)" in result.stdout
    assert "\x1b" not in result.stdout


def test_show_prints_a_preset_with_origins_that_is_a_preset_itself():
    result = call("show", "tiny", "--seed", "5", "--set", "trainer.gamma=0.9")
    assert result.exit_code == 0
    assert re.search(r"^seed = 5 +# --seed$", result.stdout, re.MULTILINE)
    assert re.search(r"^gamma = 0.9 +# --set$", result.stdout, re.MULTILINE)
    assert re.search(r"^lam = 0.95 +# default$", result.stdout, re.MULTILINE)
    Path("copy.toml").write_text(result.stdout)
    again = call("show", "copy.toml")
    assert tomllib.loads(again.stdout) == tomllib.loads(result.stdout)


# Choosing the front end.


@pytest.mark.parametrize(
    ("term", "stdin", "stdout", "screen"),
    [
        ("xterm-256color", True, True, True),
        ("dumb", True, True, False),
        ("", True, True, False),
        ("unknown", True, True, False),
        ("xterm", False, True, False),
        ("xterm", True, False, False),
    ],
)
@pytest.mark.parametrize("headless", [False, True])
def test_the_dashboard_needs_a_terminal_that_can(
    monkeypatch, term, stdin, stdout, screen, headless
):
    class End:
        closed = False

        def __init__(self, is_terminal):
            self.isatty = lambda: is_terminal
            self.fileno = lambda: -1  # a terminal that controls no job

    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(cli.sys, "stdin", End(stdin))
    monkeypatch.setattr(cli.sys, "stdout", End(stdout))
    started = []
    monkeypatch.setattr(tui.headless, "run_headless", lambda session: started.append("plain") or 0)
    monkeypatch.setattr(run, "launch", lambda: None)  # which would fork
    monkeypatch.setattr(
        tui.app, "run_dashboard", lambda session, launcher: started.append("screen") or 0
    )
    arguments = ["run", "tiny", *(["--headless"] if headless else [])]
    with pytest.raises(SystemExit) as leaving:
        cli.app(arguments)
    assert leaving.value.code == 0
    assert started == ["screen" if screen and not headless else "plain"]


def test_the_menu_without_a_terminal_says_what_to_do_instead():
    result = call()
    assert result.exit_code == 2
    assert "ppo-tui run PRESET" in result.stderr


# Training, for real.


def test_a_piped_run_prints_plain_lines_and_can_be_repeated_bit_for_bit():
    first = train("tiny", "--run-dir", "first", "--device", "auto")
    assert (first.returncode, first.stderr) == (0, b"")
    assert ESC not in first.stdout
    lines = first.stdout.decode().splitlines()
    assert [line.split()[1] for line in lines if line.startswith("it ")] == [
        f"{i}/4" for i in (1, 2, 3, 4)
    ]
    assert any("no GPU (no NVIDIA driver): 16 worlds; tiny runs on the CPU" in s for s in lines)
    (drawn,) = re.findall(r"seed (\d+) was drawn", first.stdout.decode())
    config = tomllib.loads(Path("first/config.toml").read_text())
    assert config["trainer"]["seed"] == int(drawn)
    assert sorted(path.name for path in Path("first/checkpoints").iterdir()) == [
        "model_2.pt",
        "model_4.pt",
    ]

    again = train("first/config.toml", "--run-dir", "again")
    assert again.returncode == 0
    assert "was drawn" not in again.stdout.decode()
    assert metrics("again") == metrics("first")
    assert len(metrics("first")) == 4
    before, after = _flat(weights("first")), _flat(weights("again"))
    assert len(before) > 1000
    assert torch.equal(before, after)


def _flat(state):
    if isinstance(state, torch.Tensor):
        return state.flatten().double()
    parts = state.values() if isinstance(state, dict) else state if isinstance(state, list) else []
    return torch.cat([torch.empty(0, dtype=torch.float64), *(_flat(part) for part in parts)])


def test_a_run_without_a_folder_given_lies_under_runs_with_its_name():
    assert train("tiny", "--iterations", "1", "--name", "try").returncode == 0
    (path,) = Path("runs/tiny").iterdir()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_try", path.name)
    assert len(metrics(path)) == 1


def test_a_run_that_fails_says_why_and_exits_with_1():
    ended = train(
        "tiny",
        *("--run-dir", "failed", "--set", "trainer.schedule=fixed"),
        *("--set", "trainer.learning_rate=1e30"),
    )
    assert ended.returncode == 1
    message = ended.stderr.decode().strip()
    assert len(message.splitlines()) == 1
    assert message.endswith("; see failed/log.txt")
    assert "Traceback" in Path("failed/log.txt").read_text()


def test_the_command_that_an_interrupted_run_leaves_behind_goes_on_with_it():
    settings = ("--set", "trainer.gamma=0.9", "--set", "trainer.save_interval=100000")
    command = [*COMMAND, "run", "tiny", "--iterations", "100000", *settings]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while b"it      3/" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    (path,) = Path("runs/tiny").iterdir()
    done = len(metrics(path))
    (line,) = re.findall(r"to go on +ppo-tui (run .*)", output.decode())
    assert line == f"run tiny --resume {path.name}"

    again = subprocess.run(
        [*COMMAND, *shlex.split(line), "--iterations", str(done + 2)], capture_output=True
    )
    assert (again.returncode, again.stderr) == (0, b"")
    said = again.stdout.decode()
    assert re.findall(r"^it +(\d+)/", said, re.MULTILINE) == [str(done + 1), str(done + 2)]
    assert f"model_{done}.pt loaded, goes on after {done} iterations" in said
    assert f"--resume {path.name} --iterations {2 * (done + 2)}" in said
    assert [line["iteration"] for line in metrics(path)] == list(range(1, done + 3))
    assert tomllib.loads((path / "config.toml").read_text())["trainer"]["gamma"] == 0.9


def test_the_folder_alone_is_enough_to_go_on_with_the_settings_of_the_run():
    settings = ("--num-envs", "8", "--set", "env.observations.policy.joint_vel_rel.scale=0.5")
    assert train("tiny", "--iterations", "2", "--run-dir", "mine", *settings).returncode == 0
    Path("presets/tiny.toml").unlink()
    again = train("--resume", "mine", "--iterations", "4")
    assert (again.returncode, again.stderr) == (0, b"")
    assert [line["iteration"] for line in metrics("mine")] == [1, 2, 3, 4]
    config = tomllib.loads(Path("mine/config.toml").read_text())["env"]
    assert config["num_envs"] == 8
    assert config["observations"]["policy"]["joint_vel_rel"]["scale"] == 0.5


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_the_last_iteration_and_exits_with_its_code(number):
    command = [*COMMAND, "run", "tiny", "--iterations", "100000", "--run-dir", "run"]
    command += ["--set", "trainer.save_interval=100000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while b"it      3/" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(number)
    output, errors = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert errors == b""
    assert f"{number.name}: saves and stops" in output.decode()
    last = len(metrics("run"))
    assert [path.name for path in Path("run/checkpoints").iterdir()] == [f"model_{last}.pt"]


def test_a_reader_that_goes_away_does_not_end_the_training():
    command = [*COMMAND, "run", "tiny", "--iterations", "20", "--run-dir", "run"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"starting ...\n"
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait(timeout=60) == 0
    assert errors == b""
    assert len(metrics("run")) == 20
    assert "the output cannot be written any more" in Path("run/log.txt").read_text()


def test_a_run_whose_folder_is_deleted_can_be_gone_on_with():
    command = [*COMMAND, "run", "tiny", "--iterations", "100000", "--run-dir", "run"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while b"it      3/" not in process.stdout.readline():
        assert process.poll() is None
    shutil.rmtree("run", ignore_errors=True)  # a file may be written meanwhile
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, b"")
    done = json.loads(Path("run/status.json").read_text())["completed_iterations"]
    again = train("tiny", "--resume", "run", "--iterations", str(done + 1))
    assert (again.returncode, again.stderr) == (0, b"")
    assert f"goes on after {done} iterations" in again.stdout.decode()


def test_a_dumb_terminal_gets_plain_lines():
    child = pexpect.spawn(
        sys.executable,
        ["-m", "tui", "run", "tiny", "--iterations", "2"],
        env={**os.environ, "TERM": "dumb"},
        timeout=60,
    )
    output = child.read()
    child.close()
    assert child.exitstatus == 0
    assert b"it 2/2" in output
    assert ESC not in output


def test_interrupted_before_it_trains_the_program_leaves_with_130():
    script = "import os, signal, tui.cli as cli; cli.app = lambda **_: os.kill(os.getpid(), 2);"
    process = subprocess.run(
        [sys.executable, "-c", script + "cli.main()"], capture_output=True, timeout=20
    )
    assert (process.returncode, process.stderr) == (130, b"")
