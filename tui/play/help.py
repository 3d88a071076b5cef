"""Help of the play screen: its keys, and how to read the picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from textual.binding import ActiveBinding
from textual.widgets import Static

from tui.screens.help import HelpScreen, heading, key_table

PICTURE = """\
The policy acts without noise: its mean, with the observations it was trained on but for their \
noise. Nobody pushes, no curriculum moves, and what the robot is told changes with its episode \
alone, or by your keys, within the range that training drew from.

From the right: the robot looks to the right, its left side is drawn in dots. A foot that touches \
the ground is a full disc. The marks below the ground stay where they are.

From above: ahead is right. The dotted arrow is where the robot is told to be in half a second, \
the full one where its velocity leads; the arcs show how far it turns in a second. Ground that \
rises has contour lines, the line behind the robot is its way.

A target pose is a disc with three axes. "by you" means that your keys hold the command; c gives \
it back to the env."""


class PlayHelp(HelpScreen):
    """Closed by esc, q or ?.

    Args:
        keys: the keys that mean something on the screen behind.
        steering: which keys steer, in a line; empty where nothing can be steered.
    """

    CSS_PATH = "../screens/help.tcss"

    def __init__(self, keys: Mapping[str, ActiveBinding], steering: str) -> None:
        super().__init__(keys, ())
        self._steering = steering

    def tables(self) -> Iterator[Static]:
        """Yield the keys and the explanation."""
        yield Static(heading("Keys"))
        yield Static(self.rendered(key_table(self._keys, names_of_arrows=self.in_ascii)))
        if self._steering:
            yield Static(self._steering, classes="panel", markup=False)
        yield Static(heading("The picture"), classes="panel")
        yield Static(PICTURE, markup=False)
