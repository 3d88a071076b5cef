"""How the screen looks, in a real terminal: remembered however it is left, and changed by keys."""

import json
import re
import signal
import sys

import pytest

from tests.pty.conftest import iterations, wait_until
from tests.pty.test_colours import MANY, OF_256

TIMING = "[6 Timing]"


@pytest.fixture
def file(state_home):
    return state_home / "ppo-tui/screen.json"


def at_work(terminal):
    terminal.wait_until(lambda: iterations(terminal) >= 2, 120, "iterations")
    return terminal


def quit_with(terminal, keys="qs"):
    terminal.send(keys)
    assert terminal.wait_for_end() == 0
    assert b"Traceback" not in terminal.raw


def test_view_and_smoothing_are_there_again_when_the_program_is_opened_again(toy, file):
    first = at_work(toy.train())
    first.send("6++")
    first.wait_for("smoothed 0.8")
    quit_with(first)
    replay = toy.watch()
    replay.wait_for(TIMING, 60)
    replay.wait_for("smoothed 0.8")
    replay.send("1")
    replay.wait_for("[1 Overview]")
    quit_with(replay, "q")
    assert json.loads(file.read_text())["view"] == "overview"


@pytest.mark.parametrize("way", ["detached", "terminated", "hung up"])
def test_the_screen_is_remembered_however_it_is_left(toy, file, way):
    terminal = at_work(toy.train())
    terminal.send("6")
    terminal.wait_for(TIMING)
    match way:
        case "detached":
            terminal.send("d")
        case "terminated":
            terminal.kill(signal.SIGTERM)
        case "hung up":
            terminal.hang_up()
    wait_until(lambda: terminal.read() or file.exists(), 30, "the file")
    assert json.loads(file.read_text())["view"] == "timing"


def test_a_key_sends_the_colours_of_the_next_theme_and_an_option_beats_what_is_remembered(toy):
    at_work(toy.train(env={"COLORTERM": "truecolor"}, iterations=3)).wait_for("finished", 60)
    quit_with(toy.terminals[0], "q")
    light, dark = b"48;2;250;250;247", b"48;2;20;23;28"

    def seen(*arguments, keys="", env=None):
        terminal = toy.watch(*arguments, env={"COLORTERM": "truecolor", **(env or {})})
        terminal.wait_for("[1 Overview]", 60)
        if keys:
            start = len(terminal.raw)
            terminal.send(keys)
            terminal.read(1.5)
            return light in terminal.raw[start:], terminal
        terminal.read(0.5)
        return light in terminal.raw, terminal

    changed, terminal = seen(keys="T")
    assert changed
    quit_with(terminal, "q")
    for arguments, env, is_light in (
        ((), {}, True),
        (("--theme", "dark"), {}, False),
        ((), {"TEXTUAL_THEME": "ppo-tui-dark"}, False),
        (("--theme", "light"), {"TEXTUAL_THEME": "ppo-tui-dark"}, True),
    ):
        found, terminal = seen(*arguments, env=env)
        assert (found, dark in terminal.raw) == (is_light, not is_light)
        quit_with(terminal, "q")


def cells_of(terminal):
    """Characters and colours of all that a terminal shows; what colour a blank has nobody sees."""
    rows, columns = terminal.screen.lines, terminal.screen.columns
    cells = [terminal.screen.buffer[y][x] for y in range(rows) for x in range(columns)]
    return [
        cell._replace(fg="default") if cell.data == " " and not cell.reverse else cell
        for cell in cells
    ]


@pytest.mark.parametrize("colours", [{"COLORTERM": "truecolor"}, {"NO_COLOR": "1"}], ids=str)
def test_after_a_change_of_theme_the_terminal_shows_what_it_would_if_opened_with_it(toy, colours):
    at_work(toy.train(iterations=3)).wait_for("finished", 60)
    quit_with(toy.terminals[0], "q")
    opened = toy.watch("--theme", "light", env=colours)
    changed = toy.watch("--theme", "dark", env=colours)
    for terminal in (opened, changed):
        terminal.wait_for("it 3/3", 60)
    changed.send("T")
    changed.wait_for("Theme: ppo-tui-light")
    changed.wait_until(lambda: "Theme:" not in changed.text, 10, "the end of the message")
    opened.read(0.5)
    changed.wait_until(lambda: cells_of(changed) == cells_of(opened), 5, "the same picture")


def test_options_beat_what_terminal_and_locale_promise(toy):
    at_work(toy.train(iterations=3)).wait_for("finished", 60)
    quit_with(toy.terminals[0], "q")
    for term, arguments, env, colours in (
        ("xterm", ("--color", "256"), {}, OF_256),
        ("xterm", ("--color", "truecolor", "--charset", "ascii"), {"NO_COLOR": "1"}, MANY),
        ("alacritty", (), {}, MANY),
    ):
        terminal = toy.watch(*arguments, env={"COLORTERM": "", "TERM": term, **env})
        terminal.wait_for("[1 Overview]", 60)
        terminal.read(0.5)
        assert re.search(colours, terminal.raw)
        assert terminal.text.isascii() == ("ascii" in arguments)
        quit_with(terminal, "q")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--theme", "drak"), "did you mean dark?"),
        (("--charset", "brail"), "did you mean braille?"),
        (("--color", "24"), "--color 24: must be one of auto, 16, 256, truecolor"),
    ],
)
@pytest.mark.parametrize("command", [[], ["run", "cartpole"], ["watch"], ["play", "latest"]])
def test_a_look_that_there_is_none_of_is_refused_in_a_sentence(toy, command, arguments, said):
    terminal = toy.open([sys.executable, "-m", "tui", *command, *arguments])
    assert terminal.wait_for_end(60) == 2
    assert said in terminal.text.replace("\n", "")
    assert "Traceback" not in terminal.text
    assert not (toy.folder.parent / "runs").exists()
