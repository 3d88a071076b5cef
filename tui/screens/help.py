"""Help, made from what is there: the focused panel's text, the keys that are bound, the stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markdown import Markdown
from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from trainer.stages import Stage
from tui.draw.spans import Charset, ascii_text
from tui.panels import Panel
from tui.screens.base import FollowsTerminal

STAGES: Mapping[Stage, str] = {
    Stage.OBSERVE: "the worlds' state becomes observations [N, O], one row a world",
    Stage.ACT_STEP: "the policy draws actions [N, A]; physics runs; rewards and ends come back",
    Stage.STORE: "all of it fills row t of the rollout [T, N]; t grows by one",
    Stage.TARGETS: "backward over the rollout: advantages and returns [T, N, 1] (GAE)",
    Stage.SAMPLE: "the B = T N transitions are shuffled once and cut into mini-batches of M",
    Stage.OPTIMIZE: "each mini-batch: ratio, KL, losses, one optimizer step; every epoch again",
    Stage.FRESH: "the cursor goes back to t = 0; weights and running episodes stay",
}
"""What each stage does, in a line."""


class HelpScreen(FollowsTerminal, ModalScreen[None]):
    """Closed by esc, q or ?.

    Args:
        keys: the keys that mean something on the screen behind.
        panels: those to explain.
        focused: the one to explain first, before all keys.
    """

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter,space", "dismiss", "Close"),
    ]

    def __init__(
        self,
        keys: Mapping[str, ActiveBinding],
        panels: Sequence[Panel],
        focused: Panel | None = None,
    ) -> None:
        super().__init__()
        self._keys = keys
        self._first = focused.HELP if focused is not None else None
        self._texts = dict.fromkeys(panel.HELP for panel in panels if panel.HELP)

    def compose(self) -> ComposeResult:
        """Yield the focused panel's section, keys and stages, then a section for each panel."""
        with VerticalScroll(id="page"):
            if self._first:
                yield Static(self._rendered(Markdown(self._first.strip())), classes="first")
            yield Static(self.summary())
            for text in self._texts:
                if text != self._first:
                    yield Static(self._rendered(Markdown(text.strip())), classes="panel")

    @property
    def _in_ascii(self) -> bool:
        return getattr(self.app, "charset", None) is Charset.ASCII

    def _rendered(self, text: Markdown) -> RenderableType:
        return InAscii(text) if self._in_ascii else text

    def summary(self) -> Content:
        """Return the tables of keys and stages."""
        keys = key_table(self._keys, ascii_only=self._in_ascii)
        return Content("\n").join(
            [
                _heading("Keys"),
                *(Content(f"  {key:<14} {what}") for key, what in keys),
                Content(""),
                _heading("The seven stages of an iteration"),
                *(Content(f"  {stage.value} {stage.label:<9} {STAGES[stage]}") for stage in Stage),
            ]
        )


class InAscii:
    """Anything that Rich can draw, in ASCII.

    Args:
        renderable: what to draw.
    """

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Draw it, and replace every character that is not ASCII."""
        for text, style, control in console.render(self._renderable, options):
            yield Segment(ascii_text(text.replace("•", "*")), style, control)


def _heading(text: str) -> Content:
    return Content.styled(text, "bold $accent")


def key_table(
    bindings: Mapping[str, ActiveBinding], *, ascii_only: bool = False
) -> list[tuple[str, str]]:
    """List keys and what they do: those of the footer first, keys of one meaning in one row.

    Args:
        bindings: as a screen's `active_bindings`.
        ascii_only: write the names of arrows, and everything else, in ASCII.
    """
    names = {"escape": "esc"} if ascii_only else _KEY_NAMES
    rows: dict[str, list[str]] = {}
    for key, active in sorted(bindings.items(), key=lambda item: not item[1].binding.show):
        binding = active.binding
        what = binding.tooltip or binding.description
        if active.enabled and what and not binding.system and binding.action not in _UNSAID:
            rows.setdefault(what, []).append(binding.key_display or names.get(key, key))
    table = [(" ".join(keys), what) for what, keys in rows.items()]
    return [(ascii_text(keys), ascii_text(what)) for keys, what in table] if ascii_only else table


_UNSAID = ("screen.copy_text",)
"""Actions that Textual binds by itself and that mean nothing without a mouse."""

_KEY_NAMES = {"left": "←", "right": "→", "up": "↑", "down": "↓", "escape": "esc"}
