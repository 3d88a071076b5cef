"""Keys of a screen whose curves and tables are read: zoom, smoothing, cursor, filter."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input

from tui.draw.lens import Lens
from tui.panels import CurvePanel, EventsPanel, RolloutPanel, TagTable
from tui.panels.curves import LensMoved
from tui.panels.tag_table import TagChosen
from tui.screens.base import SizedScreen
from tui.screens.output import OutputTail

FILTERED = "TagTable, EventsPanel, CurvePanel, OutputTail"
"""What the filter applies to."""


class FilterLine(Input):
    """Where a filter is typed; there only while it is."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(
            placeholder="filter: parts of names, or a regular expression   enter keeps   esc drops",
            id=id,
            compact=True,
        )
        self.cursor_blink = False
        self.display = False


class ReadingScreen(SizedScreen):
    """Charts that share a lens, and a filter over all tables."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", show=False, key_display="/", tooltip="Filter rows and metrics"),
        Binding("g", "curves", show=False, tooltip="All metrics and their curves"),
        Binding("v", "quantity(1)", show=False, tooltip="Rollout: reward, value, advantage, ..."),
        Binding("V", "quantity(-1)", show=False, tooltip="Rollout: the quantity before"),
        Binding("y", "log_axis", show=False, tooltip="Log axis of the curves, or a linear one"),
        Binding("plus", "smooth(1)", show=False, key_display="+", tooltip="Smooth curves more"),
        Binding("minus", "smooth(-1)", show=False, key_display="-", tooltip="Smooth curves less"),
        Binding(
            "left_square_bracket",
            "reach(-1)",
            show=False,
            key_display="[",
            tooltip="Curves: more iterations",
        ),
        Binding(
            "right_square_bracket",
            "reach(1)",
            show=False,
            key_display="]",
            tooltip="Curves: only the last iterations",
        ),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.lens = Lens()
        """How all charts of this screen are looked at."""

    def redraw(self) -> None:
        """Show what is to be shown now."""
        raise NotImplementedError

    def open_curve(self, tag: str) -> None:
        """Show a metric's curve as large as there is room."""
        raise NotImplementedError

    def action_smooth(self, by: int) -> None:
        """Smooth the curves more or less."""
        self.lens.smooth(by)
        self.redraw()

    def action_reach(self, by: int) -> None:
        """Show less or more of the past."""
        self.lens.zoom(by)
        self.redraw()

    def action_log_axis(self) -> None:
        """Switch the axis of all curves in sight."""
        for curve in self.query(CurvePanel):
            if curve.region.area:
                curve.action_toggle_log()

    def action_quantity(self, by: int) -> None:
        """Show another quantity of the rollout, in all of its maps."""
        for rollout in self.query(RolloutPanel):
            if rollout.region.area:
                rollout.action_cycle(by)
                for other in self.query(RolloutPanel).exclude(f"#{rollout.id}"):
                    other.show_quantity(rollout.quantity)

    def action_curves(self) -> None:
        """Show all metrics."""
        self.open_curve("")

    def on_lens_moved(self, event: LensMoved) -> None:
        """Show the cursor in all charts."""
        event.stop()
        self.redraw()

    def on_tag_chosen(self, event: TagChosen) -> None:
        """Let the chart beside a table follow it, or open a curve."""
        event.stop()
        if event.opened:
            self.open_curve(event.tag)
            return
        for name in ("rewards", "curve"):
            view = self.query_one(f"#{name}")
            if view.display:
                view.query_one(CurvePanel).tag = event.tag
                view.query_one(TagTable).chosen = event.tag

    # The filter.

    @property
    def is_filtering(self) -> bool:
        """Whether rows are left out, or about to be."""
        line = self.query_one(FilterLine)
        return line.display or bool(line.value)

    def action_filter(self) -> None:
        """Ask what rows must hold."""
        if self.maximized is not None:
            self.minimize()
        line = self.query_one(FilterLine)
        line.display = True
        line.focus()

    def drop_filter(self) -> None:
        """Show all rows again."""
        line = self.query_one(FilterLine)
        line.value = ""
        line.display = False
        self.set_focus(None)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Leave out what does not hold it, while it is typed."""
        if not isinstance(event.input, FilterLine):
            return
        for widget in self.query(FILTERED):
            if isinstance(widget, TagTable | EventsPanel | CurvePanel | OutputTail):
                widget.filter = event.value
        self.redraw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keep the filter, and go to the first table that it applies to."""
        if not isinstance(event.input, FilterLine):
            return
        event.input.display = False
        self.set_focus(None)
        tables = [t for t in self.query(TagTable) if t.region.area and t.can_focus]
        if tables:
            tables[0].focus()
