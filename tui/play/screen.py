"""The play screen: a robot that acts, and the keys that tell it what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widget import Widget

from tui.draw.robot import has_top_view
from tui.play.performance import Frame, Performance
from tui.play.widgets import Numbers, PlayHeader, PlayWidget, SideView, TopView, Tracking
from tui.screens.base import SizedScreen
from tui.screens.keys import KeyLine

KEYS: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "velocity": {
        "up": (0, 1), "down": (0, -1), "left": (2, 1), "right": (2, -1), "a": (1, 1), "d": (1, -1),
    },
    "pose": {
        "up": (2, 1), "down": (2, -1), "left": (0, -1), "right": (0, 1), "a": (1, 1), "d": (1, -1),
    },
}  # fmt: skip
"""For each kind of goal: key to the number that it changes, and which way."""

HELP = {
    "velocity": "Arrows: forward, back, and turning; a and d: sideways; 0: stand.",
    "pose": "Arrows: up, down, back and ahead; a and d: to its left and right.",
}
"""For each kind of goal how it is steered, in a line."""


class PlayScreen(SizedScreen):
    """Shows a performance; the app hands it each new frame.

    Args:
        performance: what plays.
        names: preset, run and checkpoint, for the header.
    """

    CSS_PATH = "play.tcss"
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "pause", "Pause", tooltip="Pause, and go on"),
        Binding("full_stop", "step", "Step", key_display=".", tooltip="While paused: one step"),
        Binding("up", "steer('up')", "Steer", key_display="arrows", tooltip="Steer the command"),
        # one row of the help and one word of the footer are enough for all of them
        *(Binding(key, f"steer('{key}')", show=False) for key in ("down", "left", "right")),
        Binding("a", "steer('a')", "Sideways", show=False, tooltip="Command: to the left"),
        Binding("d", "steer('d')", "Sideways", show=False, tooltip="Command: to the right"),
        Binding("0", "stand", "Stand", show=False, tooltip="Command: 0"),
        Binding("c", "redraw", "Command", tooltip="Have the env draw a new command"),
        Binding("n", "world(1)", "World", tooltip="Look at the next world"),
        Binding("N", "world(-1)", "World", show=False, tooltip="Look at the world before"),
        Binding("r", "restart", "Reset", tooltip="Begin the next episode"),
        Binding("plus", "speed(1)", "Speed", key_display="+ -", tooltip="Play faster or slower"),
        Binding("equals_sign", "speed(1)", show=False),
        Binding("minus", "speed(-1)", show=False),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "app.quit", "Quit"),
    ]

    def __init__(self, performance: Performance, names: Sequence[str]) -> None:
        super().__init__()
        self._performance = performance
        self._names = names
        self._frame = performance.frame

    def contents(self) -> list[Widget]:
        """Return header, views, numbers and keys."""
        return [
            Vertical(
                PlayHeader(self._names, id="header"),
                Container(
                    SideView(id="side"),
                    TopView(id="top"),
                    Tracking(id="tracking"),
                    Numbers(id="numbers"),
                    id="stage",
                ),
                id="page",
            ),
            KeyLine(),
        ]

    def on_mount(self) -> None:
        """Show what there is."""
        self._draw()

    def on_resize(self) -> None:
        """Draw for the new size."""
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        frame = self._frame
        with self.app.batch_update():
            if frame.pose is not None:
                self.set_class(not has_top_view(frame.pose), "-flat-task")
            for widget in self.query(PlayWidget):
                if widget.display:
                    widget.show(frame)

    def show(self, frame: Frame) -> None:
        """Show a new frame."""
        before, self._frame = self._frame, frame
        self._draw()
        if self._keys_depend_on(before) != self._keys_depend_on(frame):
            self.refresh_bindings()

    # Keys.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Say which keys mean something now; the footer shows only those."""
        frame = self._frame
        match action:
            case "step":
                return frame.is_paused
            case "steer" | "redraw":
                return bool(self._kind(frame))
            case "stand":
                return self._kind(frame) == "velocity"
            case "world":
                return frame.num_worlds > 1
            case "restart" | "speed" | "pause":
                return frame.is_ready
            case _:
                return True

    def _keys_depend_on(self, frame: Frame) -> tuple[object, ...]:
        return frame.is_ready, frame.is_paused, self._kind(frame)

    @staticmethod
    def _kind(frame: Frame) -> str:
        """What kind of goal the robot has that a person can steer; empty for none."""
        pose = frame.pose
        if pose is None or not pose.quantities:
            return ""
        return "velocity" if pose.told_velocity is not None else "pose"

    def action_pause(self) -> None:
        """Pause, or go on."""
        self._performance.toggle_pause()

    def action_step(self) -> None:
        """Make one step."""
        self._performance.step_once()

    def action_steer(self, key: str) -> None:
        """Change what the robot is told."""
        change = KEYS.get(self._kind(self._frame), {}).get(key)
        if change is not None:
            self._performance.steer(*change)

    def action_stand(self) -> None:
        """Tell the robot to stand."""
        self._performance.stand()

    def action_redraw(self) -> None:
        """Leave the command to the env."""
        self._performance.redraw_command()

    def action_world(self, by: int) -> None:
        """Look at another world."""
        self._performance.turn_to(by)

    def action_restart(self) -> None:
        """Begin the next episode."""
        self._performance.restart()

    def action_speed(self, by: int) -> None:
        """Play faster or slower."""
        self._performance.change_speed(by)

    def action_help(self) -> None:
        """Explain the keys and the picture."""
        from tui.play.help import PlayHelp

        nodes = (self, self.app)
        own = {key: active for key, active in self.active_bindings.items() if active.node in nodes}
        self.app.push_screen(PlayHelp(own, HELP.get(self._kind(self._frame), "")))
