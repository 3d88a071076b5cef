"""The menu's form over a preset, and its list of runs."""

import datetime as dt
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from textual.widgets import Input, Static
from typer.testing import CliRunner

from presets.form import form_fields
from presets.loader import load
from tests.presets.tiny import TINY, write
from tests.tui.fake_session import run_info
from trainer.rundir import RunDir, process_start
from trainer.summary import summarize_run
from trainer.wire import to_json
from tui import cli
from tui.app import DashboardApp
from tui.draw.spans import Charset
from tui.opening import Opening, Seen, newest_runs, run_menu
from tui.remote import attaching
from tui.screens.dashboard import DashboardScreen
from tui.screens.edit import EditScreen, FieldList
from tui.screens.menu import MenuScreen
from tui.screens.preset_text import command_line
from tui.screens.run_text import age, more_iterations, resume_line, run_line

NOW = dt.datetime(2026, 2, 1, 12, 30, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def _a_folder_with_a_tiny_preset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write(tmp_path, tiny=TINY)


def past(name, state="finished", pid=2**22 + 1, iterations=3, total=4, preset="tiny"):
    run = RunDir.create(
        Path("runs", preset, name), f'name = "{preset}"\n[trainer]\nnum_iterations = {total}\n'
    )
    for number in range(1, iterations + 1):
        run.append_metrics(number, 128 * number, 1.5 * number, {"Train/mean_reward": 2.0 * number})
    run.write_status(
        {"state": state, "pid": pid, "pid_started": process_start(pid), "num_iterations": total}
    )
    return run


# The form.


def test_every_key_of_a_preset_has_a_field_with_its_value_and_its_meaning():
    fields = {field.key: field for field in form_fields(load("tiny").preset)}
    assert fields["trainer.gamma"].value == "0.99"
    assert "Discount of future reward" in fields["trainer.gamma"].help
    assert fields["env.rewards.alive.weight"].value == "1.0"
    assert fields["env.actions.joint_effort.scale"].value == "100.0"
    assert fields["env.observations.policy.joint_vel_rel.noise"].value == "[-0.01, 0.01]"
    assert fields["trainer.seed"].value == ""
    assert all(field.help for field in fields.values())
    assert not {"name", "description"} & set(fields)


@pytest.mark.parametrize("name", ["go2_rough", "cartpole_direct", "tiny"])
def test_a_field_left_as_it_is_changes_nothing(name):
    preset = load(name).preset
    settings = [f"{f.key}={f.value}" for f in form_fields(preset) if f.value]
    assert load(name, settings).preset == preset


def opened(size=(100, 30)):
    opening = Opening("cpu", 50.0, None)
    return opening, opening.app, opening.app.run_test(size=size)


def text_of(app, selector):
    return str(app.screen.query_one(selector, Static).content)


async def form(pilot, app):
    """Open the form over `tiny`, the last preset."""
    await pilot.pause()
    await pilot.press("end", "e")
    await pilot.pause()
    assert isinstance(app.screen, EditScreen)


async def change(pilot, words, value):
    """Filter to a field, and give it a value."""
    await pilot.press("slash", *words, "enter", "enter")
    field = pilot.app.screen.query_one("#value", Input)
    field.value = value
    await pilot.pause()


async def test_a_change_is_checked_as_it_is_typed_marked_and_started_exactly_so(monkeypatch):
    _, app, running = opened()
    started = []
    monkeypatch.setattr(
        Opening, "_start", lambda self, name, settings: started.append((name, list(settings)))
    )
    async with running as pilot:
        await form(pilot, app)
        await change(pilot, "gamma", "1.5")
        assert "--set trainer.gamma=1.5: must be at most 1" in text_of(app, "#problem")
        assert text_of(app, "#command") == ""
        await pilot.press("enter")  # is not taken
        assert app.screen.settings() == []
        app.screen.query_one("#value", Input).value = "0.97"
        await pilot.pause()
        assert text_of(app, "#command") == "ppo-tui run tiny --set trainer.gamma=0.97"
        await pilot.press("enter")
        await pilot.pause()
        line = app.screen.query_one(FieldList).lines[0]
        assert line.startswith("* trainer.gamma")
        assert "0.97   (preset: 0.99)" in line
        assert "Discount of future reward" in text_of(app, "#help")
        await pilot.press("escape")
        await change(pilot, "num_envs", "32")
        await pilot.press("enter", "s")
        await pilot.pause()
        await pilot.pause()
        ((name, settings),) = started
        assert name == "tiny"
        assert sorted(settings) == ["env.num_envs=32", "trainer.gamma=0.97"]


async def test_a_field_can_be_reset_alone_or_with_all_others():
    _, app, running = opened()
    async with running as pilot:
        await form(pilot, app)
        await change(pilot, "gamma", "0.97")
        await pilot.press("enter", "escape")
        await change(pilot, "clip_param", "0.3")
        await pilot.press("enter")
        assert sorted(app.screen.settings()) == ["trainer.clip_param=0.3", "trainer.gamma=0.97"]
        await pilot.press("r")
        assert app.screen.settings() == ["trainer.gamma=0.97"]
        await pilot.press("escape", "c")
        await pilot.pause()
        assert len(app.screen.query_one(FieldList).lines) == 1
        await pilot.press("R")
        assert app.screen.settings() == []
        assert text_of(app, "#command") == "ppo-tui run tiny"


async def test_what_was_changed_stays_in_the_menu_and_in_its_command():
    _, app, running = opened()
    async with running as pilot:
        await form(pilot, app)
        await change(pilot, "env.num_envs", "32")
        await pilot.press("enter", "escape", "escape")
        await pilot.pause()
        assert isinstance(app.screen, MenuScreen)
        assert app.screen.query_one("#worlds", Input).value == "32"
        assert "32 x 8 = 256" in text_of(app, "#details")
        assert text_of(app, "#command") == "ppo-tui run tiny --num-envs 32"
        await pilot.press("y")
        assert app.clipboard == "ppo-tui run tiny --num-envs 32"
        await pilot.press("r")
        await pilot.pause()
        assert app.screen.settings() == []


async def test_a_value_typed_by_mistake_is_left_with_escape():
    _, app, running = opened()
    async with running as pilot:
        await form(pilot, app)
        await change(pilot, "gamma", "x")
        await pilot.press("escape")
        await pilot.pause()
        assert text_of(app, "#problem") == ""
        assert app.screen.settings() == []


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (200, 50)])
async def test_the_form_fits_every_size_and_ascii(size):
    _, app, running = opened(size)
    app.charset = Charset.ASCII
    async with running as pilot:
        await form(pilot, app)
        assert app.screen.query_one(FieldList).size.height >= 4
        assert all(line.isascii() for line in app.screen.query_one(FieldList).lines)
        for columns, rows in ((70, 16), (61, 15), (20, 3), (1, 1), size):
            await pilot.resize_terminal(columns, rows)
            await pilot.pause()


def test_the_command_line_is_what_the_shell_takes_apart_again():
    settings = ["env.num_envs=128", "trainer.num_iterations=9", "a.b=[1, 2]", 'c="x y"']
    words = shlex.split(command_line("tiny", settings))
    assert words == [
        "ppo-tui", "run", "tiny", "--num-envs", "128", "--iterations", "9",
        "--set", "a.b=[1, 2]", "--set", 'c="x y"',
    ]  # fmt: skip


def test_the_command_line_shows_the_same_preset():
    words = shlex.split(command_line("tiny", ["env.num_envs=32", "trainer.gamma=0.97"]))
    shown = CliRunner().invoke(cli.app, ["show", *words[2:]], prog_name="ppo-tui").output
    assert "num_envs = 32" in shown
    assert "gamma = 0.97" in shown


# Runs.


def test_a_run_in_a_line_has_its_state_its_age_and_its_preset():
    past("2026-02-01_09-30-00")
    past("2026-01-20_09-30-00_x", "failed")
    newest, oldest = newest_runs()
    assert run_line(newest, NOW) == "stop   3h tiny"
    assert run_line(oldest, NOW) == "FAIL  12d tiny"
    assert age(newest, NOW + dt.timedelta(minutes=5)) == "3h"
    live = past("2026-02-01_12-29-50", "running", os.getpid())
    assert run_line(summarize_run(live.path), NOW) == "live  now tiny"


def test_a_run_that_is_done_goes_on_to_twice_its_iterations():
    done = summarize_run(past("2026-01-20_09-30-00", iterations=4).path)
    assert more_iterations(done) == 8
    assert resume_line(done) == ("ppo-tui run tiny --resume 2026-01-20_09-30-00 --iterations 8")
    half = summarize_run(past("2026-01-20_09-30-01", iterations=2).path)
    assert more_iterations(half) is None


async def at_the_runs(pilot, app):
    """Wait for the runs, and go to them."""
    for _ in range(100):
        await pilot.pause(0.02)
        if app.screen.has_class("-runs"):
            break
    await pilot.press("tab")
    await pilot.pause()


async def until(pilot, condition):
    """Wait for what a worker does."""
    for _ in range(1500):
        await pilot.pause(0.02)
        if condition():
            return
    raise AssertionError("not within 30 s")


async def test_a_run_that_is_over_is_watched_as_it_was_recorded():
    past("2026-02-01_09-30-00")
    opening, app, running = opened((80, 24))
    async with running as pilot:
        await at_the_runs(pilot, app)
        assert "mean reward   6.000, at best 6.000" in text_of(app, "#details")
        assert "state         stopped" in text_of(app, "#details")
        await pilot.press("w")
        await until(pilot, lambda: opening.next is not None)
    assert app.return_value == 0


async def test_a_live_run_that_does_not_answer_is_told_of_in_the_menu(monkeypatch):
    monkeypatch.setattr(attaching, "START_PATIENCE", 0.1)
    past("2026-02-01_09-30-00", "running", os.getpid())
    opening, app, running = opened((80, 24))
    async with running as pilot:
        await at_the_runs(pilot, app)
        assert "state         running, in process" in text_of(app, "#details")
        await pilot.press("w")
        await until(pilot, lambda: text_of(app, "#problem"))
        assert "trains, but cannot be reached" in text_of(app, "#problem")
    assert opening.next is None


async def test_a_policy_that_cannot_be_played_is_told_of_in_the_menu():
    run = past("2026-02-01_09-30-00")
    run.config.write_text(CliRunner().invoke(cli.app, ["show", "tiny", "--seed", "1"]).output)
    opening, app, running = opened((80, 24))
    async with running as pilot:
        await at_the_runs(pilot, app)
        await pilot.press("p")
        await until(pilot, lambda: text_of(app, "#problem"))
        assert "has no checkpoint yet" in text_of(app, "#problem")
    assert opening.next is None


async def test_the_menu_opens_again_at_the_run_it_was_left_for_with_what_went_wrong():
    past("2026-02-01_09-30-01")
    left = past("2026-02-01_09-30-00").path
    opening, app, running = opened((80, 24))
    async with running as pilot:
        await at_the_runs(pilot, app)
        await pilot.press("down", "w")
        await until(pilot, lambda: opening.next is not None)
    opening.reopen("the worlds could not be built")
    assert opening.app is not app
    async with opening.app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: opening.app.screen.has_class("-runs"))
        await until(pilot, lambda: text_of(opening.app, "#problem"))
        assert opening.app.screen.run_here.folder == left
        assert text_of(opening.app, "#problem") == "the worlds could not be built"
        await pilot.press("up")
        await pilot.pause()
        assert text_of(opening.app, "#problem") == ""


def test_the_menu_comes_back_until_it_is_left_or_a_signal_ends_what_was_shown(monkeypatch):
    shown = []

    def run_app(app):
        shown.append(app)
        return 0

    ends = [Seen(0), Seen(1, "no worlds"), Seen(129)]

    class Leaving(Opening):
        @property
        def next(self):
            return (lambda: ends.pop(0)) if ends else None

        @next.setter
        def next(self, following):
            pass

    monkeypatch.setattr("tui.opening.run_app", run_app)
    monkeypatch.setattr("tui.opening.Opening", Leaving)
    assert run_menu(device="cpu") == 129
    assert len(shown) == 3
    assert run_menu(device="cpu") == 0


OWN_TERMS = '''
from sim.terms.registry import reward

@reward
def nothing(env):
    """Nothing, [N]."""
    return env.terminations.terminated.float() * 0
'''


async def test_a_run_with_terms_of_ones_own_goes_on_with_them_or_says_how():
    own = Path("mine.py").absolute()
    own.write_text(OWN_TERMS)
    options = ["--terms", "mine.py", "--set", "env.rewards.nothing.weight=1.0"]
    command = ["run", "tiny", "--headless", "--seed", "1", "--iterations", "2", *options]
    # in a process of its own: this one would remember the file
    env = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[1])}
    subprocess.run([sys.executable, "-m", "tui", *command], env=env, check=True)
    folder = newest_runs()[0].folder
    line = f"ppo-tui run tiny --resume {folder.name} --terms {own} --iterations 4"

    own.rename("elsewhere.py")
    _, app, running = opened()
    async with running as pilot:
        await at_the_runs(pilot, app)
        await pilot.press("enter")
        await until(pilot, lambda: text_of(app, "#problem"))
        assert f"--terms {own}: cannot be read" in text_of(app, "#problem")
        assert text_of(app, "#command") == line
        Path("elsewhere.py").rename(own)
        assert text_of(app, "#command") == line
        await pilot.press("enter")
        await until(pilot, lambda: app.session and app.session.snapshot().state.is_over)
        assert app.session.snapshot().completed_iterations == 4
        await pilot.press("q")


def with_info(run, **changes):
    """Write what a run was started with, and read the run again."""
    RunDir(run.path).write_info(to_json(run_info(**changes)))
    return summarize_run(run.path)


def test_a_run_of_several_processes_goes_on_in_as_many(monkeypatch):
    asked = {}
    monkeypatch.setattr(
        "presets.resume.resumed_session", lambda *args, **options: asked.update(options)
    )
    run = with_info(past("2026-02-01_09-30-00"), world_size=3, own_terms=("/me/mine.py",))
    assert resume_line(run, "cpu") == (
        "ppo-tui run tiny --resume 2026-02-01_09-30-00 --terms /me/mine.py --processes 3"
    )
    Opening("cpu", 50.0, None)._resume(run)
    assert asked["ranks"].own.world_size == 3
    assert asked["own_terms"] == (Path("/me/mine.py"),)


@pytest.mark.parametrize(
    ("started_on", "here", "named"),
    [
        ("cpu", "cpu", ""),
        ("cpu", "cuda:0", " --device cpu"),
        ("cuda:0", "cuda:0", ""),
        ("cuda:1", "cuda:0", " --device cuda:1"),
        ("cuda:0", "cpu", " --device cuda:0"),
    ],
)
def test_a_run_goes_on_on_the_device_it_was_started_on(started_on, here, named):
    run = with_info(past("2026-02-01_09-30-00"), device=started_on)
    assert resume_line(run, here) == f"ppo-tui run tiny --resume 2026-02-01_09-30-00{named}"


async def test_a_run_of_a_gpu_that_is_not_here_is_refused_with_its_command():
    run = with_info(past("2026-02-01_09-30-00"), device="cuda:7")
    _, app, running = opened()
    async with running as pilot:
        await at_the_runs(pilot, app)
        await pilot.press("enter")
        await until(pilot, lambda: text_of(app, "#problem"))
        assert text_of(app, "#problem").startswith("--device cuda:7: ")
        assert text_of(app, "#command").endswith(f"--resume {run.folder.name} --device cuda:7")


async def test_a_live_run_cannot_be_gone_on_with(monkeypatch):
    past("2026-02-01_09-30-00", "running", os.getpid())
    _, app, running = opened()
    asked = []
    monkeypatch.setattr(Opening, "_resume", lambda self, run: asked.append(run))
    async with running as pilot:
        await at_the_runs(pilot, app)
        await pilot.press("enter")
        await pilot.pause()
        assert asked == []
        assert text_of(app, "#command") == ""


async def test_a_run_without_a_checkpoint_says_so_when_it_is_to_go_on():
    config = CliRunner().invoke(cli.app, ["show", "tiny", "--seed", "1"]).output
    run = past("2026-02-01_09-30-00", "failed")
    run.config.write_text(config)
    _, app, running = opened()
    async with running as pilot:
        await at_the_runs(pilot, app)
        await pilot.press("enter")
        for _ in range(500):
            await pilot.pause(0.02)
            if text_of(app, "#problem"):
                break
        assert "has no checkpoint yet" in text_of(app, "#problem")
        await pilot.press("escape")
        await pilot.pause()
        assert text_of(app, "#problem") == ""


async def test_enter_goes_on_with_a_run_as_the_command_line_would():
    trained = CliRunner().invoke(
        cli.app, ["run", "tiny", "--headless", "--seed", "1", "--iterations", "2"]
    )
    assert trained.exit_code == 0
    _, app, running = opened()
    async with running as pilot:
        await at_the_runs(pilot, app)
        folder = newest_runs()[0].folder
        assert text_of(app, "#command") == (
            f"ppo-tui run tiny --resume {folder.name} --iterations 4"
        )
        await pilot.press("enter")
        for _ in range(1000):
            await pilot.pause(0.02)
            if app.session is not None and app.session.snapshot().state.is_over:
                break
        assert isinstance(app.screen, DashboardScreen)
        assert app.session.snapshot().completed_iterations == 4
        await pilot.press("q")
    assert app.return_value == 0
    assert isinstance(app, DashboardApp)
