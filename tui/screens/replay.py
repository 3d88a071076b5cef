"""The dashboard of a recorded run, with a slider over its iterations."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from trainer.recording import Recording
from trainer.telemetry import SessionView, Snapshot
from tui.draw.numbers import duration
from tui.draw.spans import Charset, Role, Span
from tui.panels import Panel
from tui.screens.dashboard import DashboardScreen
from tui.screens.status import StatusLine

FRAMES = 4.0
"""Iterations shown in a second at the slowest pace; each step faster doubles it."""

FASTEST = 8
"""How often the pace can be doubled."""


class TimeSlider(Panel):
    """Where in the run the cursor is."""

    MOVES: ClassVar[bool] = True
    DEFAULT_CSS = """
    TimeSlider, TimeSlider.-ascii { height: 1; border: none; }
    """
    HELP: ClassVar[str | None] = """\
## Time

The run is over; what is shown is how it was at the cursor. Left and right move it by one
iteration, with shift by a hundredth of the run, home and end to its ends; space plays, `+` and `-`
change how fast. Curves end at the cursor. Tensors, rollouts and ratios are not recorded.
"""

    def __init__(self, recording: Recording, id: str | None = None) -> None:
        super().__init__(id=id)
        self._recording = recording
        self.playing = 0.0
        """Iterations a second; 0: it stands still."""

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the cursor, on what moves it, and on what it points to, which is read later."""
        done = snapshot.completed_iterations
        return self._recording.cursor, len(self._recording), self.playing, done, snapshot.elapsed

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the slider between what stands on either side of it."""
        total, at = len(self._recording), self._recording.cursor
        digits = len(str(total))
        left = f"it {self.snapshot.completed_iterations:>{digits}} "
        pace = f"> {self.playing:g}/s" if self.playing else "recorded"
        right = f" {duration(self.snapshot.elapsed)}  {pace:<8}"
        room = max(width - len(left) - len(right), 1)
        place = round((room - 1) * at / max(total - 1, 1)) if total else 0
        rail, knob = ("-", "o") if self.charset is Charset.ASCII else ("─", "●")
        return [
            (
                Span(left, Role.STRONG),
                Span(rail * place, Role.PRIMARY),
                Span(knob, Role.STRONG),
                Span(rail * (room - place - 1), Role.GUIDE),
                Span(right, Role.MUTED),
            )
        ]


class ReplayScreen(DashboardScreen):
    """Shows a recorded run at any of its iterations.

    Args:
        recording: the run.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", "Play", tooltip="Play on, or stand still"),
        Binding("left", "move(-1)", "Back", key_display="←", tooltip="One iteration back"),
        Binding("right", "move(1)", "On", key_display="→", tooltip="One iteration on"),
        Binding("shift+left", "leap(-1)", "Back far", show=False, tooltip="A hundredth back"),
        Binding("shift+right", "leap(1)", "On far", show=False, tooltip="A hundredth on"),
        Binding("home", "end(-1)", "First", show=False, tooltip="The first iteration"),
        Binding("end", "end(1)", "Last", show=False, tooltip="The last iteration"),
        Binding("plus,equals_sign", "faster(1)", "Faster", key_display="+", tooltip="Play faster"),
        Binding("minus", "faster(-1)", "Slower", key_display="-", tooltip="Play slower"),
    ]

    def __init__(self, recording: Recording) -> None:
        super().__init__(recording)
        self._recording = recording
        self._pace = 0
        self._at = 0.0

    def last_lines(self) -> list[Widget]:
        """Return the slider, and the dashboard's own lines."""
        self._slider = TimeSlider(self._recording, id="slider")
        return [self._slider, *super().last_lines()]

    def on_mount(self) -> None:
        """Be ready to play."""
        super().on_mount()
        self.query_one(StatusLine).display = False  # the slider says it
        self._slider.show(self.snapshot, self._recording)
        self._timer = self.set_interval(1 / FRAMES, self._play, pause=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave out what a run that is over cannot do."""
        if action in ("pause", "run", "trace", "turn", "look_back", "app.detach"):
            return False
        return super().check_action(action, parameters)

    def action_move(self, by: int) -> None:
        """Move the cursor by iterations."""
        self._seek(self._recording.cursor + by)

    def action_leap(self, by: int) -> None:
        """Move the cursor by hundredths of the run."""
        self._seek(self._recording.cursor + by * max(1, len(self._recording) // 100))

    def action_end(self, side: int) -> None:
        """Go to the first or the last iteration."""
        self._seek(0 if side < 0 else len(self._recording) - 1)

    def action_faster(self, by: int) -> None:
        """Change how fast it plays."""
        self._pace = max(0, min(self._pace + by, FASTEST))
        self._slider.playing = self._rate if self._slider.playing else 0.0
        self._show_time()

    def action_play(self) -> None:
        """Play on from the cursor, from the start where it is at the end; or stand still."""
        if self._slider.playing:
            self._stand_still()
            return
        if self._recording.cursor >= len(self._recording) - 1:
            self._recording.seek(0)
        self._at = float(self._recording.cursor)
        self._slider.playing = self._rate
        self._timer.resume()

    @property
    def _rate(self) -> float:
        return FRAMES * 2**self._pace

    def _play(self) -> None:
        self._at += self._slider.playing / FRAMES
        self._recording.seek(int(self._at))
        if self._recording.cursor >= len(self._recording) - 1:
            self._stand_still()
        self._show_time()

    def _stand_still(self) -> None:
        self._slider.playing = 0.0
        self._timer.pause()
        self._show_time()

    def _seek(self, index: int) -> None:
        self._recording.seek(index)
        self._at = float(self._recording.cursor)
        self._show_time()

    def _show_time(self) -> None:
        self.show(self._recording.snapshot())
        self._slider.show(self.snapshot, self._recording)
