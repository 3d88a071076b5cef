"""Curriculum terms."""

import torch

from sim.terms import curriculum  # noqa: F401 - importing registers its terms
from tests.sim.recorded import recorded_env


def test_a_reward_weight_changes_after_its_steps():
    env = recorded_env(
        curriculum={
            "later": {
                "term": "modify_reward_weight",
                "reward": "recorded_reward",
                "weight": -0.5,
                "num_steps": 3,
            }
        }
    )
    env.scene.fallen[0] = True
    logged = [env.step(torch.zeros(3, 2)).log["Curriculum/later"] for _ in range(5)]
    assert logged == [1.5, 1.5, 1.5, -0.5, -0.5]
    assert env.reward_terms["recorded_reward"] == -0.5
