"""What a check has found, and checks that may not hang."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How a finding is to be taken."""

    OK = "ok"
    NOTE = "note"
    """Works; worth knowing."""
    PROBLEM = "problem"
    """Something will not work."""


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    name: str
    value: str
    """What is there."""
    meaning: str = ""
    """What that means for a training."""
    verdict: Verdict = Verdict.OK
    remedy: str = ""
    """What to do about it."""


Check = Callable[[], Iterable[Finding]]


def run_check(name: str, check: Check, patience: float) -> list[Finding]:
    """Run a check; one that fails or takes too long becomes a finding itself.

    Args:
        name: what it looks at.
        check: is left behind where it hangs, such as at a network file system that is gone.
        patience: seconds.
    """
    found: list[Finding] = []
    done = threading.Event()

    def work() -> None:
        try:
            found.extend(check())
        except Exception as error:  # the report goes on with the next check
            reason = f"could not be looked at: {type(error).__name__}: {error}"
            found.append(Finding(name, reason, verdict=Verdict.NOTE))
        done.set()

    threading.Thread(target=work, daemon=True).start()
    if done.wait(patience):
        return found
    late = Finding(name, f"no answer within {patience:g} s", verdict=Verdict.PROBLEM)
    return [*found, late]
