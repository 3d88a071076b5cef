"""What the trainer asks of a vectorised env; any object with this shape can be trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Feedback(NamedTuple):
    """What one env step returns; N is the number of worlds."""

    reward: Tensor
    """Reward of the step, [N] float32, computed before any reset."""
    terminated: Tensor
    """Worlds whose episode ended in a state of its own (a fall), [N] bool."""
    time_outs: Tensor
    """Worlds whose episode was cut at its time limit, [N] bool; never set where terminated is."""
    log: Mapping[str, float | Tensor]
    """Tag to value, as means over the worlds that finished on this step; empty if none did."""
    faults: tuple[str, ...] = ()
    """One sentence for each world that went bad and was reset on this step."""
    counts: Mapping[str, float | Tensor] = MappingProxyType({})
    """Tag to how often something happened on this step; the trainer adds up an iteration."""


class Env(Protocol):
    """A batch of N worlds, stepped together. A new env has been reset already."""

    num_envs: int
    """N, the number of worlds."""
    num_actions: int
    """A, the width of an action."""
    max_episode_length: int
    """Steps after which an episode is cut by its time limit."""
    step_dt: float
    """Seconds of simulated time in one env step."""
    device: torch.device
    """Where all tensors of the env live."""
    episode_length: Tensor
    """Steps made in the running episode, [N] int64; may be overwritten in place by the trainer."""
    observation_terms: Mapping[str, tuple[tuple[str, int], ...]]
    """For each observation group its terms in order, each with its width."""
    action_names: tuple[str, ...]
    """What each of the A columns of an action drives."""
    reward_terms: Mapping[str, float]
    """Name of each reward term with its weight; empty where the env has none by name."""

    def observe(self) -> dict[str, Tensor]:
        """Compute the observation groups of the present state: group name to [N, O_g] float32.

        A group is a new tensor at every call.
        """
        ...

    def step(self, actions: Tensor) -> Feedback:
        """Advance all worlds by one env step under `actions` [N, A]; reset those that finished.

        Raises:
            ArithmeticError: the physics of some worlds went bad, and they are not to begin anew. It
                has `broken_worlds`, number of a world to what was bad in it.
        """
        ...

    def state_dict(self) -> dict[str, Any]:
        """All that an exact continuation needs: tensors, numbers, strings, lists and dicts only.

        Empty where the worlds cannot be saved: on a resume they begin anew.
        """
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that `state_dict` returned."""
        ...

    def close(self) -> None:
        """Give back threads and device memory."""
        ...


@runtime_checkable
class PhysicsEnv(Protocol):
    """What an env may offer beside `Env`: a look at its physics, for when numbers go bad."""

    nan_guard: bool
    """Whether a world whose physics goes bad ends alone and begins anew."""

    def physics_state(self) -> Mapping[str, Tensor]:
        """What shows whether the physics is sound, by name, [N, ...] each."""
        ...


class AdjustableValue(Protocol):
    """A number of an env that may change while a run goes on."""

    @property
    def key(self) -> str:
        """As a preset names it below `env`, such as "rewards.feet_air_time.weight"."""
        ...

    @property
    def value(self) -> float | tuple[float, float]:
        """The one in force; a range as low and high."""
        ...

    @property
    def about(self) -> str:
        """What it is."""
        ...

    @property
    def note(self) -> str:
        """What a person should know before another value is given."""
        ...

    @property
    def refusal(self) -> str:
        """Why another value would have no effect; empty where it has one."""
        ...


@runtime_checkable
class AdjustableEnv(Protocol):
    """What an env may offer beside `Env`: values that can be edited between two steps."""

    def adjustable(self) -> Sequence[AdjustableValue]:
        """Say what can be edited, with the values in force."""
        ...

    def adjust(self, key: str, value: Any) -> None:  # noqa: ANN401 - a number or a range
        """Give another value, from the next step on.

        Raises:
            ValueError: there is no such key, or the value is not allowed. Nothing has changed.
        """
        ...


@runtime_checkable
class ProgressiveEnv(Protocol):
    """What an env may offer beside `Env`: new worlds that are as hard as others had become."""

    def load_progress(self, state: Mapping[str, Any]) -> None:
        """Begin all worlds anew, with what a curriculum had reached when a state was saved.

        Args:
            state: as `state_dict` returned it, perhaps with another engine or in another process.
        """
        ...
