"""Episodes of a trained policy as a table, or as JSON."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tui.draw.numbers import known, plural

if TYPE_CHECKING:
    from trainer.playing import Episode


class Summary(NamedTuple):
    """A number of every episode, summed up."""

    mean: float
    std: float
    """Population standard deviation."""
    min: float
    max: float


def summarize(values: Sequence[float]) -> Summary:
    """Sum up at least one number."""
    if not all(map(math.isfinite, values)):
        return Summary(*(math.nan,) * 4)
    return Summary(statistics.fmean(values), statistics.pstdev(values), min(values), max(values))


def summaries(episodes: Sequence[Episode], step_dt: float) -> dict[str, Summary]:
    """Return, length (s) and every metric of the episodes, summed up, by name."""
    found = {
        "return": summarize([episode.total for episode in episodes]),
        "length_s": summarize([episode.length * step_dt for episode in episodes]),
    }
    for name in episodes[0].metrics:
        found[name] = summarize([episode.metrics[name] for episode in episodes])
    return found


def as_table(about: Mapping[str, Any], episodes: Sequence[Episode], step_dt: float) -> str:
    """Write a table for a person.

    Args:
        about: what was played, name to value.
        episodes: at least one.
        step_dt: seconds of a step.
    """
    found = summaries(episodes, step_dt)
    width = max(map(len, (*found, *about))) + 2
    lines = [f"{name:<{width}}{value}" for name, value in about.items()]
    lines += ["", f"{'':<{width}}" + "".join(f"{title:>10}" for title in Summary._fields)]
    lines += [
        f"{name:<{width}}" + "".join(f"  {known(value, 8)}" for value in summary)
        for name, summary in found.items()
    ]
    falls = sum(episode.fell for episode in episodes)
    share = 100 * falls / len(episodes)
    lines.append(f"{'falls':<{width}}{falls} of {plural(len(episodes), 'episode')} ({share:.0f} %)")
    return "\n".join(lines)


def as_json(about: Mapping[str, Any], episodes: Sequence[Episode], step_dt: float) -> str:
    """Write all of it for a program; numbers that are not finite are null."""
    document = {
        **about,
        **{name: summary._asdict() for name, summary in summaries(episodes, step_dt).items()},
        "falls": sum(episode.fell for episode in episodes),
        "fall_rate": sum(episode.fell for episode in episodes) / len(episodes),
        "step_dt": step_dt,
        "each": [
            {
                "world": episode.world,
                "return": episode.total,
                "length": episode.length,
                "fell": episode.fell,
                **episode.metrics,
            }
            for episode in episodes
        ],
    }
    return json.dumps(_finite(document), indent=2)


def _finite(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, list) else value
