"""Env steps/s of an mjlab task under random actions; see gpu.py.

    python -m benchmarks.mjlab_speed TASK DEVICE NUM_ENVS STEPS

prints [env steps/s, GB of the GPU in use] in its last line. Needs torch and mjlab alone.
"""

import json
import sys
import time

WARM_UP = 5
"""Times 24 env steps that are not measured."""


def memory(device):
    """GB of the GPU's memory in use, by whichever library; None on the CPU."""
    import torch

    if not device.startswith("cuda"):
        return None
    free, total = torch.cuda.mem_get_info(device)
    return (total - free) / 1e9


def step_mjlab(task, device, num_envs, steps):
    """Env steps/s and memory of an mjlab task under random actions."""
    import mjlab.tasks  # noqa: F401 - registers the tasks
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.tasks.registry import load_env_cfg

    config = load_env_cfg(task)
    config.scene.num_envs = num_envs
    env = ManagerBasedRlEnv(cfg=config, device=device)
    env.reset()
    return step_rate(env.step, num_envs, env.action_manager.total_action_dim, device, steps)


def step_rate(step, num_envs, num_actions, device, steps):
    """Env steps/s of `step`, after some that do not count, and the memory then in use."""
    import torch

    def run(count):
        for _ in range(count):
            step(torch.randn(num_envs, num_actions, device=device))
        if device.startswith("cuda"):
            torch.cuda.synchronize(device)

    run(24 * WARM_UP)
    started = time.perf_counter()
    run(steps)
    return num_envs * steps / (time.perf_counter() - started), memory(device)


if __name__ == "__main__":
    task, device, num_envs, steps = sys.argv[1:]
    print(json.dumps(step_mjlab(task, device, int(num_envs), int(steps))))
