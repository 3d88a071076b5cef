"""The colours that are sent are those that the terminal promises, whatever SSH and tmux pass on."""

import re

import pytest

from tests.pty.conftest import iterations

COLOURED = rb"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;\d+)*m"
FEW = rb"\x1b\[(?:[\d;]*;)?(?:3[0-7]|9[0-7])(?:;|m)"
OF_256 = rb"[34]8;5;\d"
ATTRIBUTES = rb"\x1b\[(?:[\d;]*;)?[127](?:;\d+)*m"
MANY = rb"[34]8;2;\d"


@pytest.mark.parametrize(
    ("environment", "sent", "never"),
    [
        ({"TERM": "screen"}, FEW, (OF_256, MANY)),
        ({"TERM": "xterm"}, FEW, (OF_256, MANY)),
        ({"TERM": "linux"}, FEW, (OF_256, MANY)),
        ({"TERM": "tmux-256color"}, OF_256, (MANY,)),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, MANY, (OF_256,)),
        ({"COLORTERM": "truecolor", "NO_COLOR": "1"}, ATTRIBUTES, (COLOURED,)),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else "",
)
def test_a_terminal_gets_the_colours_that_it_knows(toy, environment, sent, never):
    terminal = toy.train(env={"COLORTERM": "", **environment})
    terminal.wait_until(lambda: iterations(terminal) >= 2, 120, "iterations")
    terminal.send("4\t1")
    terminal.read(1.0)
    terminal.send("\x03\x03")
    assert terminal.wait_for_end() == 0
    assert re.search(sent, terminal.raw)
    for pattern in never:
        assert not re.search(pattern, terminal.raw)
