"""Points on a line as an env of RSL-RL's, and RSL-RL's runner over them."""

from types import SimpleNamespace

import torch
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

NUM_ENVS, NUM_OBS, NUM_ACTIONS = 8, 5, 3


class Points:
    """x' = x + 0.1 a, seen through five numbers; paid to stay near 0."""

    def __init__(self, num_obs=NUM_OBS, num_actions=NUM_ACTIONS):
        self.num_envs, self.num_actions = NUM_ENVS, num_actions
        self.max_episode_length = 20
        self.device = "cpu"
        self.cfg = {}
        self.unwrapped = SimpleNamespace(step_dt=0.1)
        self.episode_length_buf = torch.zeros(NUM_ENVS, dtype=torch.long)
        self._generator = torch.Generator().manual_seed(0)
        self._look = torch.randn(num_actions, num_obs, generator=self._generator)
        self._x = torch.zeros(NUM_ENVS, num_actions)

    def get_observations(self):
        noise = torch.randn(NUM_ENVS, self._look.shape[1], generator=self._generator)
        return TensorDict({"policy": self._x @ self._look + 0.1 * noise}, batch_size=[NUM_ENVS])

    def step(self, actions):
        self._x = self._x + 0.1 * actions
        self.episode_length_buf += 1
        reward = 1 - self._x.square().sum(1)
        dones = (self.episode_length_buf >= self.max_episode_length) | (reward < -3)
        self._x[dones] = 0.0
        self.episode_length_buf[dones] = 0
        return self.get_observations(), reward, dones.long(), {"time_outs": dones & (reward >= -3)}


def make_runner(env=None, *, recurrent=None, distribution=None, algorithm=None, **network):
    """A runner of RSL-RL's over the points.

    Args:
        env: the env; points where unset.
        recurrent: keys of a recurrent model.
        distribution: keys of the distribution.
        algorithm: keys of PPO.
        network: keys of both models.
    """
    model = {
        "class_name": "RNNModel" if recurrent else "MLPModel",
        "hidden_dims": [8, 6],
        **(recurrent or {}),
        **network,
    }
    noise = {"class_name": "GaussianDistribution", **(distribution or {})}
    config = {
        "num_steps_per_env": 6,
        "save_interval": 10,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**model, "distribution_cfg": noise},
        "critic": dict(model),
        "algorithm": {"class_name": "PPO", "num_mini_batches": 2, **(algorithm or {})},
    }
    if (algorithm or {}).get("rnd_cfg"):
        config["obs_groups"]["rnd_state"] = ["policy"]
    torch.manual_seed(0)
    return OnPolicyRunner(env or Points(), config, log_dir=None, device="cpu")
