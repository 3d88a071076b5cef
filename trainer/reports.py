"""What the worlds of each rank brought in one iteration, and how that is made one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trainer.episodes import EpisodeStatistics
from trainer.ranks import RankError

Log = Mapping[str, float | Tensor]


class Report(NamedTuple):
    """One rank's iteration, in numbers that JSON can carry."""

    logs: dict[str, list[float]]
    """Tag to the sum of its values, and to how many there were: the env steps that had one."""
    counts: dict[str, float]
    """Tag to how often something happened."""
    episodes: dict[str, float]
    """Means over the last finished episodes; empty while none has finished."""
    num_episodes: int
    """Over how many."""
    faults: list[str]
    """A sentence for each world that went bad."""
    weights: int = 0
    """Fingerprint of the weights after the update, where there are several ranks."""
    iteration: int = 0
    """Completed iterations, where there are several ranks."""

    @classmethod
    def of(
        cls,
        logs: Sequence[Log],
        counts: Sequence[Log],
        episodes: EpisodeStatistics,
        faults: Sequence[str],
    ) -> Report:
        """Sum up one rank's iteration.

        Args:
            logs: of each env step that had any.
            counts: of each env step that had any.
            episodes: the rank's finished episodes.
            faults: a sentence for each world that went bad.
        """
        return cls(
            {tag: [sum(found), len(found)] for tag, found in _by_tag(logs).items()},
            {tag: sum(found) for tag, found in _by_tag(counts).items()},
            episodes.metrics(),
            episodes.count,
            list(faults),
        )


class Brought(NamedTuple):
    """What the worlds of all ranks brought."""

    logs: dict[str, float]
    """Tag to its mean over the env steps of all ranks that had one."""
    counts: dict[str, float]
    """Tag to its sum over all ranks."""
    episodes: dict[str, float]
    """Means over the last finished episodes of every rank."""
    faults: list[str]
    """With the rank, where there are several."""


def merged(reports: Sequence[Report]) -> Brought:
    """Make one of the reports of all ranks, in the order of ranks; at least one."""
    tags = dict.fromkeys(tag for report in reports for tag in report.logs)
    logs = {}
    for tag in tags:
        sums, numbers = zip(*(r.logs[tag] for r in reports if tag in r.logs), strict=True)
        logs[tag] = sum(sums) / sum(numbers)
    counts: dict[str, float] = {}
    for report in reports:
        for tag, count in report.counts.items():
            counts[tag] = counts.get(tag, 0) + count
    if len(reports) == 1:
        return Brought(logs, counts, reports[0].episodes, reports[0].faults)
    faults = [f"rank {rank}: {text}" for rank, r in enumerate(reports) for text in r.faults]
    return Brought(logs, counts, _mean_episodes(reports), faults)


def weights_fingerprint(parameters: Iterable[Tensor]) -> int:
    """A number by which two sets of float32 weights that differ in any bit almost surely differ."""
    sums = [parameter.detach().view(torch.int32).sum(dtype=torch.int64) for parameter in parameters]
    return int(torch.stack(sums).sum())


def require_equal_weights(reports: Sequence[Report]) -> None:
    """Refuse to go on where a rank has come to other weights than rank 0.

    Raises:
        RankError: says which.
    """
    for rank, report in enumerate(reports):
        if report.weights != reports[0].weights:
            raise RankError(
                f"rank {rank}: its weights differ from those of rank 0 after "
                f"iteration {report.iteration}; do all ranks run the same torch on like machines?"
            )


def _mean_episodes(reports: Sequence[Report]) -> dict[str, float]:
    some = [report for report in reports if report.num_episodes]
    total = sum(report.num_episodes for report in some)
    tags: list[str] = list(some[0].episodes) if some else []
    return {tag: sum(r.num_episodes * r.episodes[tag] for r in some) / total for tag in tags}


def _by_tag(logs: Sequence[Log]) -> dict[str, list[float]]:
    """Values of each tag, one for each env step on which it appeared."""
    values: dict[str, list[float]] = {}
    for log in logs:
        for tag, value in log.items():
            values.setdefault(tag, []).append(float(value))
    return values


def from_json(entries: Sequence[Mapping[str, Any]]) -> list[Report]:
    """Read reports that came from other ranks."""
    return [Report(**entry) for entry in entries]
