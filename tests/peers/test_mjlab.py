"""mjlab's cartpole through the adapter, against mjlab's own wrapper, and trained in.

mjlab is pinned to another MuJoCo than ours, so it may live in an environment of its own, named by
`MJLAB_PYTHON`; beside torch the trainer needs pydantic there. Warp compiles the kernels of mjlab
for minutes the first time, and keeps them.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = os.environ.get("MJLAB_PYTHON") or (sys.executable if find_spec("mjlab") else None)

pytestmark = pytest.mark.skipif(
    PYTHON is None, reason="mjlab is not installed; MJLAB_PYTHON may name a Python that has it"
)

SCRIPT = """
import json, sys
import torch
from trainer.adapters.rsl_rl import RslRlEnv, make_mjlab
from trainer.config import ActorConfig, CriticConfig, TrainerConfig
from trainer.loop import Trainer

N, STEPS = 8, 12
actions = torch.randn(STEPS, N, 1, generator=torch.Generator().manual_seed(5))

def worlds():
    return make_mjlab("Mjlab-Cartpole-Balance", N, 3)

def age(buffer):
    buffer[:4] = 1000 - 5  # four of them reach the time limit on the fifth step

def theirs():
    env = worlds()
    age(env.episode_length_buf)
    seen = []
    for action in actions:
        observations, reward, dones, extras = env.step(action)
        seen.append([observations["actor"].tolist(), reward.tolist(), dones.tolist(),
                     extras["time_outs"].int().tolist()])
    return seen

def ours():
    env = RslRlEnv(worlds())
    age(env.episode_length)
    seen, logs = [], []
    for action in actions:
        feedback = env.step(action)
        done = (feedback.terminated | feedback.time_outs).int()
        seen.append([env.observe()["actor"].tolist(), feedback.reward.tolist(), done.tolist(),
                     feedback.time_outs.int().tolist()])
        logs.append(sorted(feedback.log))
    return seen, logs, env

seen, logs, env = ours()
config = TrainerConfig(seed=1, actor=ActorConfig(hidden_dims=(16,)),
                       critic=CriticConfig(hidden_dims=(16,)))
trainer = Trainer(env, config)
trainer.iterate()
print("RESULT", json.dumps({
    "theirs": theirs(), "ours": seen, "logs": logs, "terms": env.observation_terms,
    "rewards": dict(env.reward_terms), "step_dt": env.step_dt, "metrics": trainer.metrics(),
}))
"""


@pytest.fixture(scope="module")
def result():
    done = subprocess.run(
        [PYTHON, "-c", SCRIPT],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""},
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.split("RESULT ")[1])


def test_every_number_is_that_of_mjlab_s_own_wrapper(result):
    assert result["ours"] == result["theirs"]
    time_outs = [step[3] for step in result["ours"]]
    assert time_outs[4] == [1, 1, 1, 1, 0, 0, 0, 0]
    assert sum(map(sum, time_outs)) == 4


def test_a_log_comes_with_the_steps_on_which_a_world_finished(result):
    assert [step for step, tags in enumerate(result["logs"]) if tags] == [4]
    assert "Episode_Reward/smooth_reward" in result["logs"][4]


def test_the_dashboard_knows_terms_and_time(result):
    terms = [["cart_pos", 1], ["pole_angle", 2], ["cart_vel", 1], ["pole_vel", 1]]
    assert result["terms"] == {"actor": terms, "critic": terms}
    assert result["rewards"] == {"smooth_reward": 1.0}
    assert result["step_dt"] == pytest.approx(0.05)


def test_an_iteration_of_training(result):
    metrics = result["metrics"]
    assert 0 < metrics["Loss/kl_mean"] < 1
    assert metrics["Loss/value"] > 0
