"""An app that sends a terminal only what it can take: changed cells, when it is ready for them."""

from __future__ import annotations

import time
from typing import Generic, TypeVar

from rich.color import ColorSystem
from rich.console import RenderableType
from textual import events
from textual._ansi_sequences import SYNC_END, SYNC_START
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App
from textual.screen import Screen

from tui.driver import TerminalDriver
from tui.pace import BYTES_PER_CELL, Pace
from tui.picture import Picture

RETRY = 0.05
"""Seconds between two looks at whether the terminal takes the next frame."""

URGENCY = 0.5
"""Seconds after a key in which frames are sent whatever their size."""

Result = TypeVar("Result")


class PaintingApp(App[Result], Generic[Result]):
    """Paints into a picture and sends its changes, by whole frames.

    While the terminal has not shown the last frame, or had its share of bytes, changes gather in
    the picture: a slow link gets fewer frames, never old ones. A frame that answers a key is sent
    whatever the share.
    """

    bytes_per_cell = BYTES_PER_CELL
    """Bytes a second that a steady picture may take for each cell."""

    _picture: Picture | None = None
    _pace = Pace(0.0)
    frame_interval = 0.0
    """Seconds between two frames, unless a key was pressed; what comes between joins the next."""
    _sent = 0.0
    _urgent_until = 0.0

    @property
    def _terminal(self) -> TerminalDriver | None:
        """The driver, where there is a real terminal."""
        return self._driver if isinstance(self._driver, TerminalDriver) else None

    async def on_event(self, event: events.Event) -> None:
        """Let what a key brings about be seen at once."""
        if isinstance(event, events.Key):
            self._urgent_until = time.monotonic() + URGENCY
        await super().on_event(event)

    def watch_theme(self) -> None:
        """Have what is drawn anew stand out from the ground of this theme."""
        if self._picture is not None:
            self._picture.is_dark = self.current_theme.dark

    def paint_all(self) -> None:
        """Send every cell anew: something else has written to the terminal."""
        if self._picture is not None:
            self._picture.forget()
            self.refresh(layout=True)

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        driver, update = self._terminal, renderable
        if driver is None or not isinstance(update, LayoutUpdate | ChopsUpdate):
            super()._display(screen, renderable)
            return
        if self._batch_count or not self._running or self._closed:
            return
        try:
            picture = self._fitting_picture()
            if isinstance(update, LayoutUpdate):
                _draw_layout(picture, update)
            else:
                _draw_chops(picture, update)
        except Exception as error:
            self._handle_exception(error)
            return
        self._send_frame()
        self.post_display_hook()

    def _fitting_picture(self) -> Picture:
        width, height = self.size
        if self._picture is None:
            system = self.console._color_system or ColorSystem.TRUECOLOR
            is_dark = self.current_theme.dark
            self._pace = Pace(0.0)
            self._picture = Picture(None if self.no_color else system, is_dark=is_dark)
            self._retry = self.set_interval(RETRY, self._send_frame, pause=True)
        self._picture.resize(width, height)
        self._pace.rate = self.bytes_per_cell * max(width * height, 80 * 24)
        return self._picture

    def _send_frame(self) -> None:
        """Send what has changed if the terminal may have it now, or look again soon."""
        driver, picture = self._terminal, self._picture
        if driver is None or picture is None:
            return
        now = time.monotonic()
        may_have_it = self._pace.allows and now - self._sent >= self.frame_interval
        if not driver.is_ready or not (may_have_it or now < self._urgent_until):
            self._retry.resume()
            return
        self._retry.pause()
        frame = picture.changes()
        if not frame:
            return
        if self._sync_available:
            frame = f"{SYNC_START}{frame}{SYNC_END}"
        if self.cursor_position:  # where an input method shows what is being typed
            column, row = self.cursor_position
            frame += f"\x1b[{row + 1};{column + 1}H"
        driver.write_frame(frame)
        self._sent = now
        self._pace.spend(len(frame.encode("utf-8", "replace")))


def _draw_layout(picture: Picture, update: LayoutUpdate) -> None:
    for y, strips in enumerate(update.strips, update.region.y):
        x = update.region.x
        for strip in strips:
            picture.draw(x, y, strip)
            x += strip.cell_length


def _draw_chops(picture: Picture, update: ChopsUpdate) -> None:
    for y, start, stop in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is not None and x < stop and end > start:
                picture.draw(x, y, strip.crop(0, min(end, stop) - x))
