"""One robot of the worlds that train."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from trainer.pose import Choice, RobotPose, RobotRequest
from trainer.telemetry import RunState, SessionView, Snapshot
from tui.draw.robot import NO_POSE, has_top_view, legend, readings, side_view, top_view
from tui.draw.spans import Line, Role, Span, beside, block
from tui.draw.trail import Trail
from tui.panels.base import Panel

NUMBERS_WIDTH = 34
"""Cells of the numbers beside the picture."""
WIDE = 150
"""Cells from which both views and the numbers stand side by side."""
LEAST_TOP_VIEW = 6
"""Lines below which the view from above is left out."""
ASK_AGAIN = 2.0
"""Seconds without a picture after which it is asked for anew: another viewer may have left."""


class RobotPanel(Panel, can_focus=True):
    """A robot from its right and from above, with what it is told and what it does."""

    MOVES: ClassVar[bool] = True
    TITLE: ClassVar[str] = "robot"

    HELP: ClassVar[str | None] = """\
## Robot

One world of the running training, a few times a second: with the policy's noise, pushes and all.
From the right the robot looks to the right, its left side is drawn in dots, and a foot that touches
the ground is a full disc; from above ahead is right. The dotted arrow is the velocity it is told,
the full one its own, the arcs how fast it turns. Ground that rises has contour lines.

`w` looks at the world with the least reward a step in its running episode, `W` at that with the
most, each until the episode ends; `n` and `{` go through the worlds, `f` stays with the one on
show. `ppo-tui play` shows the same without noise, and can be steered.

**Healthy:** after a few hundred iterations a walking robot keeps its body level and lifts each foot
in turn; full and dotted arrow point the same way. Feet that tremble without leaving the ground, or
a body that leans on one knee, are rewards that were met in a way nobody meant.
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "choose('worst')", show=False, tooltip="Robot: the world that does worst"),
        Binding("W", "choose('best')", show=False, tooltip="Robot: the world that does best"),
        Binding("n,right_curly_bracket", "next(1)", show=False, tooltip="Robot: the next world"),
        Binding("left_curly_bracket", "next(-1)", show=False, tooltip="Robot: the world before"),
        Binding("f", "follow", show=False, tooltip="Robot: stay with the world on show"),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.request = RobotRequest()
        self._trail = Trail()
        self._looking = False
        self._asked = 0.0

    # What the dashboard calls.

    def enter(self, session: SessionView) -> None:
        """Begin to look."""
        self._looking = True
        self._ask(session)
        self.focus()

    def leave(self, session: SessionView) -> None:
        """Look no more."""
        self._looking = False
        session.watch_robot(None)

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the picture alone."""
        return id(snapshot.robot), snapshot.state is RunState.STARTING

    def show(self, snapshot: Snapshot, session: SessionView) -> None:
        """Take a new snapshot; ask again where nothing has come."""
        if snapshot.robot is not self.snapshot.robot:
            self._trail.follow(snapshot.robot)
        missing = snapshot.robot is None and snapshot.state is RunState.RUNNING
        if self._looking and missing and time.monotonic() - self._asked > ASK_AGAIN:
            self._ask(session)
        super().show(snapshot, session)

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the views that fit, and the numbers."""
        pose = self.snapshot.robot
        if pose is None:
            self.caption(title=self.TITLE, subtitle="")
            starting = self.snapshot.state is RunState.STARTING
            return [(Span("no worlds yet" if starting else NO_POSE, Role.MUTED),)]
        info = self.snapshot.info
        of = f" of {info.num_envs}" if info is not None else ""
        keys = "w worst  W best  n next  f follow"
        self.caption(
            title=f"{self.TITLE} · world {pose.world}{of} · {_why(self.request)}", subtitle=keys
        )
        return self._picture(pose, width, height)

    def _picture(self, pose: RobotPose, width: int, height: int) -> list[Line]:
        numbers = readings(pose, NUMBERS_WIDTH, self.charset)
        if pose.told_velocity is not None:
            numbers.insert(1 + len(pose.quantities), legend(self.charset))
        if width < 2 * NUMBERS_WIDTH:
            return side_view(pose, width, height, self.charset)
        trail = self._trail.points if has_top_view(pose) else None
        if has_top_view(pose) and width >= WIDE:
            room = width - NUMBERS_WIDTH - 2
            side = side_view(pose, room * 3 // 5, height, self.charset)
            top = top_view(pose, room - room * 3 // 5, height, self.charset, trail)
            both = beside(side, top, gap=1)
            return beside(both, block(numbers, NUMBERS_WIDTH, height), gap=1)
        column = max(NUMBERS_WIDTH, width * 2 // 5) if has_top_view(pose) else NUMBERS_WIDTH
        right, left = block(numbers, column, height), height - len(numbers)
        if has_top_view(pose) and left >= LEAST_TOP_VIEW:
            top = top_view(pose, column, left, self.charset, trail)
            right = [*top, *block(numbers, column, len(numbers))]
        return beside(side_view(pose, width - column - 1, height, self.charset), right, gap=1)

    # Keys.

    def action_choose(self, choice: str) -> None:
        """Look at the worst or the best world."""
        self._want(RobotRequest(Choice(choice)))

    def action_next(self, by: int) -> None:
        """Look at the next world, or the one before."""
        pose, info = self.snapshot.robot, self.snapshot.info
        if pose is not None and info is not None:
            self._want(RobotRequest(Choice.CHOSEN, (pose.world + by) % info.num_envs))

    def action_follow(self) -> None:
        """Stay with the world on show."""
        if (pose := self.snapshot.robot) is not None:
            self._want(RobotRequest(Choice.CHOSEN, pose.world))

    def _want(self, request: RobotRequest) -> None:
        self.request = request
        if self.session is not None:
            self._ask(self.session)

    def _ask(self, session: SessionView) -> None:
        self._asked = time.monotonic()
        session.watch_robot(self.request)


def _why(request: RobotRequest) -> str:
    """Say why this world is on show."""
    if request.choice is Choice.CHOSEN:
        return "chosen"
    return f"the {request.choice}"
