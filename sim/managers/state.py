"""Saving and restoring the tensors that an object fills in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor


class Stateful:
    """An object whose state is a few tensors, named in `buffers`."""

    buffers: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes that hold the state."""

    def state_dict(self) -> dict[str, Any]:
        """Copy the buffers, by name."""
        return {name: getattr(self, name).clone() for name in self.buffers}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Fill the buffers in place.

        Raises:
            ValueError: A buffer of the state has another shape than ours.
        """
        for name in self.buffers:
            ours: Tensor = getattr(self, name)
            if ours.shape != state[name].shape:
                raise ValueError(
                    f"{type(self).__name__}.{name} has shape {list(ours.shape)}, "
                    f"the saved one {list(state[name].shape)}"
                )
            ours.copy_(state[name])
