"""Rules that change the difficulty with progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sim.config import FiniteFloat, PositiveInt
from sim.managers.curriculum import Progress
from sim.terms.parameters import CommandName, RewardName
from sim.terms.registry import curriculum

if TYPE_CHECKING:
    from sim.env import ManagerBasedEnv


@curriculum
def modify_reward_weight(
    env: ManagerBasedEnv,
    ids: Tensor,
    reward: RewardName,
    weight: FiniteFloat,
    num_steps: PositiveInt,
) -> float:
    """Give a reward term another weight after `num_steps` env steps; return the weight in force."""
    if env.common_step_counter > num_steps:
        env.rewards.weights[reward] = weight
    return env.rewards.weights[reward]


@curriculum
def terrain_levels_vel(
    env: ManagerBasedEnv, ids: Tensor, command_name: CommandName = "base_velocity"
) -> Progress:
    """Move worlds up that walked off their tile, and down that made less than half their way.

    The way is the planar command in force at the end times the time limit, however early the
    episode ended. Distances are from the world's origin, so a start beside it counts. Past the last
    level a world goes to a random one: the mean level settles below the top, and a mean that no
    longer rises does not mean that learning stopped.

    Logs the mean level of all worlds and of each kind of tile, the number of worlds of each kind at
    each level (`<kind>/level_<k>`), the share of worlds that were at the last level at any time
    (`reached_top`), and counts promotions and demotions. Isaac Lab's rule.
    """
    scene = env.scene
    if scene.terrain is None:
        raise ValueError("terrain_levels_vel needs terrain with levels; the ground here is flat")
    walked = scene.robot.root_pos_w[ids, :2] - scene.env_origins[ids, :2]
    distance = torch.linalg.vector_norm(walked, dim=1)
    speed = torch.linalg.vector_norm(env.commands.value(command_name)[ids, :2], dim=1)
    up = distance > scene.terrain.map.tile_size / 2
    down = (distance < speed * env.config.episode_length_s / 2) & ~up
    # a world at the first level stays there
    down &= scene.terrain.levels[ids] > 0
    scene.terrain.move(ids, up.long() - down.long())
    counts = {"promotions": up.sum(), "demotions": down.sum()}
    return Progress(scene.terrain.summary(), counts)
