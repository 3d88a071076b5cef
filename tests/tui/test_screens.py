"""The menu and the small pieces of the screens."""

import random
from dataclasses import replace

import pytest
from pydantic import ValidationError
from textual.app import App
from textual.widgets import Input, Static

from presets.problems import PresetError, sentences
from presets.schema import Preset
from tests.tui.fake_session import FakeSession, run_info
from trainer.telemetry import EventLog, Failure, RunState, Snapshot
from tui.app import DashboardApp
from tui.draw.spans import Charset
from tui.farewell import farewell
from tui.screens.base import TooSmall
from tui.screens.choices import Choices
from tui.screens.dashboard import DashboardScreen, is_shown
from tui.screens.keys import Key, fitting_keys
from tui.screens.menu import MenuScreen
from tui.screens.output import last_lines
from tui.screens.preset_text import Sizes, command_line, preset_text, short
from tui.screens.status import status, tab_line
from tui.theme import DARK, LIGHT, default_charset, default_theme

WALKER = {
    "name": "walker",
    "description": "A robot walks.",
    "env": {
        "robot": "go2",
        "num_envs": 512,
        "actions": {"joint_pos": {}},
        "observations": {"policy": {"base_lin_vel": {}, "last_action": {}}},
        "rewards": {"alive": {"weight": 1.0}, "dof_torques_l2": {"weight": -2e-4}},
        "terminations": {"time_out": {"time_out": True}},
    },
}


SIZES = Sizes(12, {"policy": {"base_lin_vel": 3, "last_action": 12}, "critic": {"own_term": None}})


def load(name, settings):
    document = {**WALKER, "name": name, "env": dict(WALKER["env"]), "trainer": {}}
    for setting in settings:
        key, _, value = setting.partition("=")
        table, _, field = key.partition(".")
        document[table][field] = int(value)
    try:
        return Preset.model_validate(document), SIZES
    except ValidationError as error:
        raise PresetError(sentences(error, lambda path: "--set")) from None


class Session(FakeSession):
    def start(self):
        pass

    def join(self, timeout=None):
        return True


def open_menu(size=(100, 30)):
    started = []

    def start(name, settings):
        started.append((name, settings))
        app.open_session(Session())

    app = DashboardApp(menu=lambda: MenuScreen(["cartpole", "walker"], load, start, "cpu"), fps=50)
    return app, app.run_test(size=size), started


def text_of(app, selector):
    return str(app.screen.query_one(selector, Static).content)


async def test_the_menu_shows_the_shapes_that_follow_from_a_preset():
    app, running, _ = open_menu()
    async with running as pilot:
        await pilot.pause()
        details = text_of(app, "#details")
        # 512 worlds x 24 steps, 4 mini-batches, 5 epochs, 1500 iterations
        for shape in (
            "512 x 24 = 12,288",
            "M = B / 4 = 3,072",
            "5 epochs x 4",
            "mini-batches = 20",
            "18.43 M",
        ):
            assert shape in details
        assert "4 ticks x 5 ms = 20 ms, 50 Hz" in details
        assert "1,000 steps = 20 s" in details
        assert "[N, 12] joint_pos" in details
        assert "[N, 15] base_lin_vel 3, last_action 12" in details
        assert "[N, 0 + ?] own_term ?" in details
        assert text_of(app, "#command") == "ppo-tui run cartpole"


async def test_shapes_and_command_follow_n_and_t():
    app, running, _ = open_menu()
    async with running as pilot:
        await pilot.press("down", "n", "6", "4", "t", "4", "8")
        await pilot.pause()
        details = text_of(app, "#details")
        assert "64 x 48 = 3,072" in details
        assert "M = B / 4 = 768" in details
        expected = "ppo-tui run walker --num-envs 64 --set trainer.num_steps_per_env=48"
        assert text_of(app, "#command") == expected
        await pilot.press("r")
        await pilot.pause()
        assert app.screen.settings() == []


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (["n", "0"], "at least 1"),
        (["n", "1", "t", "3"], "do not divide by 4"),
        (["n", "delete"], "whole numbers"),
    ],
)
async def test_values_that_cannot_be_are_explained_and_not_started(keys, problem):
    app, running, started = open_menu()
    async with running as pilot:
        await pilot.press(*keys)
        await pilot.pause()
        assert problem in text_of(app, "#problem")
        await pilot.press("enter")
        assert started == []


async def test_enter_starts_the_chosen_preset_as_changed():
    app, running, started = open_menu()
    async with running as pilot:
        await pilot.press("down", "n", "6", "4", "enter")
        await pilot.pause()
        assert started == [("walker", ["env.num_envs=64"])]
        assert isinstance(app.screen, DashboardScreen)


async def test_a_run_that_cannot_start_is_explained():
    def refuse(name, settings):
        raise PresetError(["no folder to write to"])

    app = DashboardApp(menu=lambda: MenuScreen(["walker"], load, refuse, "cpu"))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
        assert "no folder to write to" in text_of(app, "#problem")


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
async def test_the_menu_is_left_at_once(key):
    app, running, _ = open_menu()
    async with running as pilot:
        await pilot.press(key)
        await pilot.pause()
    assert app.return_value == 0


async def test_no_size_of_the_menu_is_an_error():
    app, running, _ = open_menu((120, 40))
    draw = random.Random(5)
    sizes = [(80, 24), (70, 24), (66, 24), (61, 15), (40, 10), (10, 3), (1, 1)]
    sizes += [(draw.randint(1, 200), draw.randint(1, 50)) for _ in range(20)]
    async with running as pilot:
        for columns, rows in sizes:
            await pilot.resize_terminal(columns, rows)
            small = columns < 60 or rows < 15
            await pilot.pause()
            assert is_shown(app.screen.query_one(TooSmall)) == small, (columns, rows)
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert is_shown(app.screen.query_one("#worlds", Input))


def test_a_command_line_can_be_pasted():
    assert command_line("my preset.toml", ["env.num_envs=8"]) == (
        "ppo-tui run 'my preset.toml' --num-envs 8"
    )


@pytest.mark.parametrize(
    ("count", "text"),
    [(7, "7"), (38_400, "38.4 k"), (1_228_800, "1.229 M"), (147.456e9, "147.5 G")],
)
def test_large_counts_have_a_unit(count, text):
    assert short(count) == text


def test_long_lists_are_folded_to_the_room_there_is():
    names = {f"observation_number_{index}": 3 for index in range(12)}
    text = str(preset_text(load("walker", [])[0], Sizes(12, {"policy": names}), "cpu", 60))
    assert all(len(line) <= 60 for line in text.splitlines() if "observation_number" in line)
    assert all(name in text for name in names)


def test_a_task_written_as_a_class_says_so_in_place_of_its_terms():
    env = {"robot": "cartpole", "task": "cartpole_direct", "num_envs": 512}
    preset = Preset.model_validate({"name": "direct", "env": env})
    text = str(preset_text(preset, Sizes(1, {"policy": {"joint_pos": 2}}), "cpu", 80))
    assert "cartpole_direct: a class brings rewards and endings" in text
    assert "[N, 1]" in text
    assert "none" not in text
    assert "reward terms" not in text


def test_a_preset_with_worlds_of_another_program_names_them_and_no_ticks():
    preset = Preset.model_validate(
        {"name": "pole", "env": {"adapter": "gymnasium:CartPole-v1", "num_envs": 8}}
    )
    text = str(preset_text(preset, Sizes(0, {}), "cpu", 80))
    assert "gymnasium:CartPole-v1" in text
    assert "8 x 24 = 192 transitions" in text
    assert "ticks" not in text
    assert "reward terms" not in text


class Chooser(App[None]):
    def __init__(self):
        super().__init__()
        self.chosen = []

    def compose(self):
        yield Choices([f"choice {index}" for index in range(30)])

    def on_choices_chosen(self, event):
        self.chosen.append(event.index)


async def test_the_cursor_stays_in_the_list_and_in_sight():
    app = Chooser()
    async with app.run_test(size=(30, 5)) as pilot:
        choices = app.query_one(Choices)
        choices.styles.height = "1fr"
        await pilot.pause()
        await pilot.press("up", "enter", "end", "down", "enter")
        await pilot.pause()
        assert app.chosen == [0, 29]
        shown = [choices.render_line(y).text for y in range(5)]
        assert any(line.startswith("> choice 29") for line in shown)


INFO = run_info()
RUNNING = Snapshot(state=RunState.RUNNING, info=INFO)


@pytest.mark.parametrize(
    ("snapshot", "view", "leaving", "line"),
    [
        (Snapshot(progress="importing torch"), "overview", False, "starting: importing torch"),
        (replace(RUNNING, pending="pauses soon"), "overview", False, "pauses soon"),
        (RUNNING, "trace", False, "space pauses"),
        (RUNNING, "overview", False, "no GPU (no NVIDIA driver)"),
        (replace(RUNNING, info=replace(INFO, nan_guard=True)), "update", False, "NaN guard on"),
        (replace(RUNNING, info=replace(INFO, nan_guard=False)), "update", False, "NaN guard off"),
        (RUNNING, "overview", True, "Stopping…"),
        (replace(RUNNING, state=RunState.PAUSED), "overview", False, "PAUSED behind observe"),
        (replace(RUNNING, state=RunState.FINISHED), "overview", True, "finished after 0"),
    ],
)
def test_the_status_line_says_what_the_run_waits_for(snapshot, view, leaving, line):
    assert line in " · ".join(status(snapshot, view, leaving=leaving).sentences)


KEYS = [
    Key("space", "Pause", False),
    Key(">", "Iteration", False),
    Key("t", "Trace", False),
    Key("?", "Help", True),
    Key("q", "Quit", True),
]


@pytest.mark.parametrize("width", range(13, 60))
def test_keys_are_shown_whole_and_help_and_the_way_out_before_all_others(width):
    shown = fitting_keys(KEYS, width)
    assert len(" ".join(f"{key.name} {key.text}" for key in shown)) <= width
    assert [key for key in shown if key.is_kept] == KEYS[3:]
    others = [key for key in shown if not key.is_kept]
    assert others == KEYS[: len(others)]
    assert fitting_keys(KEYS, 45) == KEYS


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("marked", ["a", "b", "z"])
def test_tabs_do_not_move_with_the_mark(width, marked):
    tabs = {name: f"{name.upper()} view" for name in "abcdefgz"}
    lines = {name: str(tab_line(tabs, name, width)) for name in ("a", "b", "z")}
    places = {line.index("D view") for line in lines.values()}
    assert len(places) == 1
    assert f"[{marked.upper()} view]" in lines[marked]


def test_where_tabs_do_not_fit_only_the_marked_one_has_its_name():
    tabs = {"a": "1 A view", "b": "2 B view", "z": "3 Z view"}
    assert str(tab_line(tabs, "b", 20)).split() == ["1", "[2", "B", "view]", "3"]


@pytest.mark.parametrize(
    ("environment", "charset"),
    [
        ({}, Charset.BRAILLE),
        ({"LANG": "de_DE.UTF-8", "TERM": "xterm-256color"}, Charset.BRAILLE),
        ({"LC_CTYPE": "C.utf8"}, Charset.BRAILLE),
        ({"LANG": "en_US.UTF-8", "TERM": "linux"}, Charset.BLOCK),
        ({"LANG": "C"}, Charset.ASCII),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "POSIX"}, Charset.ASCII),
        ({"LANG": "en_US.ISO-8859-1"}, Charset.ASCII),
    ],
)
def test_the_characters_follow_locale_and_terminal(environment, charset):
    assert default_charset(environment) is charset


def test_the_farewell_says_how_it_ended_and_where_it_lies():
    events = EventLog()
    events.add("checkpoint", "model_300.pt saved, 2.1 MB")
    snapshot = replace(
        RUNNING,
        state=RunState.FINISHED,
        completed_iterations=312,
        metrics={"Train/mean_reward": 23.456},
    )
    text = farewell(snapshot, events, ended=True)
    assert text.splitlines()[0] == "go2_flat ended after 312 of 1,500 iterations, mean reward 23.46"
    assert INFO.run_dir in text
    assert "model_300.pt" in text
    failed = replace(
        snapshot, state=RunState.FAILED, failure=Failure("ValueError: boom", "", None, 1)
    )
    assert "ValueError: boom" in farewell(failed, events, ended=True)
    assert "lost" in farewell(snapshot, events, ended=False)


@pytest.mark.parametrize(
    ("preset", "folder", "done", "words"),
    [
        ("go2_flat", "runs/go2_flat/a", 3, "go2_flat --resume a"),
        ("go2_flat", "elsewhere/a b", 3, "go2_flat --resume 'elsewhere/a b'"),
        ("mine", "runs/mine/a", 3, "runs/mine/a/config.toml --resume a"),
        ("go2_flat", "runs/go2_flat/a", 1500, "go2_flat --resume a --iterations 3000"),
    ],
)
def test_the_farewell_tells_how_to_go_on(preset, folder, done, words):
    info = replace(INFO, preset=preset, run_dir=folder, num_iterations=1500)
    snapshot = replace(RUNNING, info=info, completed_iterations=done)
    events = EventLog()
    assert "to go on" not in farewell(snapshot, events, ended=True)
    events.add("checkpoint", "model_3.pt saved")
    assert (
        f"  to go on       ppo-tui run {words}"
        in farewell(snapshot, events, ended=True).splitlines()
    )


def test_a_run_with_terms_of_ones_own_goes_on_with_them():
    info = replace(INFO, own_terms=("/home/me/my terms.py", "/home/me/b.py"))
    events = EventLog()
    events.add("checkpoint", "model_3.pt saved")
    said = farewell(replace(RUNNING, info=info, completed_iterations=3), events, ended=True)
    assert " --terms '/home/me/my terms.py' --terms /home/me/b.py\n" in said + "\n"


def test_the_end_of_a_log_is_shown_without_its_escape_sequences(tmp_path):
    log = tmp_path / "log.txt"
    log.write_bytes(
        b"\n".join(b"line %d" % index for index in range(5000)) + b"\n\x1b[31mred\xff\n"
    )
    assert last_lines(log, 2) == ["line 4999", "␛[31mred�"]


@pytest.mark.parametrize(
    ("environment", "theme"),
    [
        ({}, DARK.name),
        ({"COLORFGBG": "15;0"}, DARK.name),
        ({"COLORFGBG": "0;15"}, LIGHT.name),
        ({"COLORFGBG": "0;default;7"}, LIGHT.name),
        ({"COLORFGBG": "0;15", "TEXTUAL_THEME": "nord"}, "nord"),
    ],
)
def test_the_theme_follows_the_terminal(environment, theme):
    assert default_theme(environment) == theme
