"""The toy env with a reward weight and a range that can be edited."""

from typing import Any, NamedTuple

from tests.trainer.toy_env import ToyEnv
from trainer.env import Feedback


class Number(NamedTuple):
    key: str
    value: Any
    about: str = ""
    note: str = ""
    refusal: str = ""


class AdjustableToyEnv(ToyEnv):
    """Pays `weight` times what the toy env pays; new episodes start within `start`."""

    def __init__(self, **arguments: Any) -> None:
        self.weight, self.start = 1.0, (-1.0, 1.0)
        super().__init__(**arguments)
        self.reward_terms = {"near": 1.0}

    def _draw(self):
        low, high = self.start
        return low + (high - low) * super()._draw().add(1).div(2)

    def step(self, actions) -> Feedback:
        feedback = super().step(actions)
        return feedback._replace(reward=self.weight * feedback.reward)

    def adjustable(self) -> tuple[Number, ...]:
        return (
            Number("rewards.near.weight", self.weight),
            Number("commands.start.x", self.start),
            Number("commands.start.y", (0.0, 0.0), refusal="it is read once"),
        )

    def adjust(self, key: str, value: Any) -> None:
        if key == "rewards.near.weight" and value > 100:
            raise ValueError("env.rewards.near.weight: 100 is enough")
        if key == "rewards.near.weight":
            self.weight = value
            self.reward_terms["near"] = value
        else:
            self.start = value
