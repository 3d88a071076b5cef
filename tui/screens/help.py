"""Help, made from what is there: the focused panel's text, the keys that are bound, the stages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from trainer.stages import Stage
from tui.panels import Panel

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


class HelpScreen(ModalScreen[None]):
    """Closed by esc, q or ?.

    Args:
        bindings: the keys that mean something on the screen behind.
        topic: the focused panel, if any.
    """

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter,space", "dismiss", "Close"),
    ]

    def __init__(self, bindings: Mapping[str, ActiveBinding], topic: Panel | None) -> None:
        super().__init__()
        self._bindings = bindings
        self._topic = topic

    def compose(self) -> ComposeResult:
        """Yield the page."""
        with VerticalScroll(id="page"):
            yield Static(self._text())

    def _text(self) -> Content:
        parts: list[Content] = []
        if self._topic is not None and self._topic.HELP:
            parts += [Content(self._topic.HELP.strip()), Content("")]
        parts.append(_heading("Keys"))
        parts += [Content(f"  {key:<12} {what}") for key, what in key_table(self._bindings)]
        parts += [Content(""), _heading("The seven stages of an iteration")]
        parts += [Content(f"  {stage.value} {stage.label:<9} {STAGES[stage]}") for stage in Stage]
        if self._topic is None:
            parts += [Content(""), Content("tab chooses a panel; ? then explains that panel too.")]
        return Content("\n").join(parts)


def _heading(text: str) -> Content:
    return Content.styled(text, "bold $accent")


def key_table(bindings: Mapping[str, ActiveBinding]) -> list[tuple[str, str]]:
    """List keys and what they do, keys of one meaning in one row.

    Args:
        bindings: as a screen's `active_bindings`.
    """
    rows: dict[str, list[str]] = {}
    for key, active in bindings.items():
        binding = active.binding
        what = binding.tooltip or binding.description
        if active.enabled and what and not binding.system:
            rows.setdefault(what, []).append(binding.key_display or _KEY_NAMES.get(key, key))
    return [(" ".join(keys), what) for what, keys in rows.items()]


_KEY_NAMES = {"left": "←", "right": "→", "up": "↑", "down": "↓", "escape": "esc"}
