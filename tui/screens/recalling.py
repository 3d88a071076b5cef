"""What the dashboard remembers of itself: how it is put back, and how it is gathered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tui.draw.lens import WEIGHTS, WINDOWS
from tui.panels import CurvePanel, RolloutPanel
from tui.remembered import Remembered

if TYPE_CHECKING:
    from tui.screens.dashboard import DashboardScreen


def recall(screen: DashboardScreen, remembered: Remembered) -> None:
    """Look as remembered, value by value; those that there are none of here change nothing."""
    if remembered.reach in WINDOWS:
        screen.lens.window = WINDOWS.index(remembered.reach)
    if remembered.smoothing in WEIGHTS:
        screen.lens.weight = WEIGHTS.index(remembered.smoothing)
    for curve in screen.query(CurvePanel):
        curve.log_axis = curve.id in remembered.log_axis
    for rollout in screen.query(RolloutPanel):
        rollout.show_quantity(remembered.quantity)
    screen.open_view(remembered.view)


def gather(screen: DashboardScreen, before: Remembered) -> Remembered:
    """Return how it looks now; what it does not know of stays as it was before."""
    return replace(
        before,
        view=screen.lasting_view,
        reach=WINDOWS[screen.lens.window],
        smoothing=WEIGHTS[screen.lens.weight],
        log_axis=tuple(curve.id for curve in screen.query(CurvePanel) if curve.log_axis),
        quantity=screen.query(RolloutPanel).first().quantity,
    )
