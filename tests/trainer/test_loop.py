"""What the loop makes of the logs of one iteration's env steps."""

import pytest
import torch

from tests.trainer.toy_env import ToyEnv
from trainer.config import ActorConfig, CriticConfig, TrainerConfig
from trainer.loop import Trainer


class TellingEnv(ToyEnv):
    """Logs a mean and counts happenings on every other step."""

    steps = 0

    def step(self, actions):
        self.steps += 1
        feedback = super().step(actions)
        if self.steps % 2:
            return feedback._replace(log={"level": float(self.steps)}, counts={"promotions": 2})
        return feedback._replace(log={}, counts={"promotions": torch.tensor(3)})


def test_logs_are_averaged_and_counts_are_added_up_over_an_iteration():
    config = TrainerConfig(
        seed=1,
        num_steps_per_env=4,
        num_mini_batches=1,
        num_learning_epochs=1,
        actor=ActorConfig(hidden_dims=(4,)),
        critic=CriticConfig(hidden_dims=(4,)),
    )
    trainer = Trainer(TellingEnv(), config)
    trainer.iterate()
    metrics = trainer.metrics()
    assert metrics["level"] == pytest.approx((1 + 3) / 2)
    assert metrics["promotions"] == 2 + 3 + 2 + 3
    trainer.iterate()
    metrics = trainer.metrics()
    assert metrics["level"] == pytest.approx((5 + 7) / 2)
    assert metrics["promotions"] == 10
