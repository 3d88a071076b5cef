"""Help, made from what is there: the focused panel's text, the keys that are bound, the stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markdown import Markdown
from rich.segment import Segment
from rich.table import Table
from rich.text import Text
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
        """Yield the focused panel's section, the tables, then a section for each panel."""
        with VerticalScroll(id="page") as page:
            page.border_subtitle = "up and down scroll, esc closes"
            if self._first:
                yield Static(self.rendered(Markdown(self._first.strip())), classes="first")
            yield from self.tables()
            for text in self._texts:
                if text != self._first:
                    yield Static(self.rendered(Markdown(text.strip())), classes="panel")

    @property
    def in_ascii(self) -> bool:
        """Whether the font has nothing but ASCII."""
        return getattr(self.app, "charset", None) is Charset.ASCII

    def tables(self) -> Iterator[Static]:
        """Yield the keys and the stages."""
        yield Static(heading("Keys"))
        yield Static(self.rendered(key_table(self._keys, names_of_arrows=self.in_ascii)))
        yield Static(heading("The seven stages of an iteration"), classes="panel")
        stages = [(f"{stage.value} {stage.label}", what) for stage, what in STAGES.items()]
        yield Static(self.rendered(folding_table(stages)))

    def rendered(self, what: RenderableType) -> RenderableType:
        """Return it as the terminal's font can show it."""
        return InAscii(what) if self.in_ascii else what


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


def heading(text: str) -> Content:
    """Return the title of a table."""
    return Content.styled(text, "bold $accent")


def folding_table(rows: Iterable[tuple[str, str]]) -> Table:
    """Put texts beside their names; those that are longer than the page is wide stay there."""
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(min_width=14, no_wrap=True)
    table.add_column(ratio=1)
    for name, text in rows:
        table.add_row(Text(f"  {name}"), Text(text))
    return table


def key_table(bindings: Mapping[str, ActiveBinding], *, names_of_arrows: bool = False) -> Table:
    """List keys and what they do: those of the last line first, keys of one meaning in one row.

    Args:
        bindings: as a screen's `active_bindings`.
        names_of_arrows: write "left" for the arrow to the left, and so on.
    """
    names = {"escape": "esc"} if names_of_arrows else _KEY_NAMES
    rows: dict[str, list[str]] = {}
    for key, active in sorted(bindings.items(), key=lambda item: not item[1].binding.show):
        binding = active.binding
        what = _SAID.get(binding.action, binding.tooltip or binding.description)
        if active.enabled and what and not binding.system and binding.action not in _UNSAID:
            rows.setdefault(what, []).append(binding.key_display or names.get(key, key))
    return folding_table((" ".join(keys), what) for what, keys in rows.items())


_SAID = {"app.focus_next": "To the next panel", "app.focus_previous": "To the panel before"}
"""What Textual says shorter, or of widgets."""

_UNSAID = ("screen.copy_text",)
"""Actions that Textual binds by itself and that mean nothing without a mouse."""

_KEY_NAMES = {"left": "←", "right": "→", "up": "↑", "down": "↓", "escape": "esc"}
