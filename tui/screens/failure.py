"""What went wrong, where, and what is saved."""

from __future__ import annotations

from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from trainer.telemetry import Failure, SessionView, Snapshot
from tui.advice import advice
from tui.draw.spans import printable
from tui.farewell import last_checkpoint


class FailureView(VerticalScroll):
    """The page of a failed run; empty while there is none."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(Static(id="failure-text"), id=id)
        self._failure: Failure | None = None

    def show(self, snapshot: Snapshot, session: SessionView) -> None:
        """Describe the failure, once."""
        failure = snapshot.failure
        if failure is None or failure is self._failure:
            return
        self._failure = failure
        stage = failure.stage.label if failure.stage is not None else "before the first stage"
        folder = snapshot.info.run_dir if snapshot.info is not None else ""
        text = Content("\n").join(
            [
                Content.styled("The run failed", "bold $error"),
                Content.styled(printable(failure.message), "bold"),
                Content(""),
                Content(f"stage            {stage}"),
                Content(f"iteration        {failure.iteration}"),
                Content(f"last checkpoint  {last_checkpoint(session.events)}"),
                Content(f"run directory    {folder}"),
                Content(f"what to try      {advice(failure) or 'see the traceback below'}"),
                Content(""),
                Content.styled(printable(failure.traceback.rstrip()), "dim"),
            ]
        )
        self.query_one(Static).update(text)
