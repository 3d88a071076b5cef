"""Which observation groups a network reads. Free of torch, so that presets can be checked at once.

A *group* is what the env hands out under one name; a *set* is what one network reads: its groups
joined in order. The rules are RSL-RL's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.config import ObsGroups

if TYPE_CHECKING:
    from torch import Tensor

FALLBACK_GROUP = "policy"
"""What a network reads whose set is not given, where no group has the network's own name."""


@dataclass(frozen=True, slots=True)
class UnknownGroup:
    """A set that names, or falls back to, a group that the env does not have."""

    set_name: str
    group: str
    """The group that is missing."""
    message: str
    """What is wrong, as a sentence without its place."""


@dataclass(frozen=True, slots=True)
class ObservationSet:
    """The groups that one network reads, joined in this order."""

    groups: tuple[str, ...] = (FALLBACK_GROUP,)

    def __call__(self, observations: Mapping[str, Tensor]) -> Tensor:
        """Join the groups' observations [..., O_g] to [..., O]; one group alone is not copied."""
        parts = self.parts(observations)
        if len(parts) == 1:
            return parts[0]
        import torch

        return torch.cat(parts, dim=-1)

    def parts(self, observations: Mapping[str, Tensor]) -> list[Tensor]:
        """The groups' observations [..., O_g], in order, without a copy."""
        return [observations[group] for group in self.groups]

    def width(self, widths: Mapping[str, int]) -> int:
        """O, the width of the joined observation, from the widths of all groups."""
        return sum(widths[group] for group in self.groups)


def unknown_groups(
    obs_groups: ObsGroups, known: Collection[str], sets: Collection[str] = ("actor", "critic")
) -> Iterator[UnknownGroup]:
    """Find the groups that sets ask for and the env does not have.

    Args:
        obs_groups: the sets that are given.
        known: names of the env's groups.
        sets: names of the sets in use.
    """
    for name in sets:
        given: tuple[str, ...] | None = getattr(obs_groups, name)
        if given is None and not {name, FALLBACK_GROUP} & set(known):
            yield UnknownGroup(
                name,
                FALLBACK_GROUP,
                f'unset, the {name} reads the observation group "{name}" or "{FALLBACK_GROUP}", '
                f"and the env has neither",
            )
        for group in given or ():
            if group not in known:
                yield UnknownGroup(name, group, f'the env has no observation group "{group}"')


def resolve_set(obs_groups: ObsGroups, name: str, known: Collection[str]) -> ObservationSet:
    """Say which groups a network reads.

    Args:
        obs_groups: the sets that are given.
        name: of the set, such as "critic".
        known: names of the env's groups.

    Returns:
        The set as given; where it is not, the group of its own name; else the group "policy".

    Raises:
        ValueError: the env lacks one of the groups.
    """
    for wrong in unknown_groups(obs_groups, known, (name,)):
        raise ValueError(
            f"trainer.obs_groups.{name}: {wrong.message}; allowed: {', '.join(known) or 'none'}"
        )
    given: tuple[str, ...] | None = getattr(obs_groups, name)
    if given is not None:
        return ObservationSet(given)
    return ObservationSet((name if name in known else FALLBACK_GROUP,))
