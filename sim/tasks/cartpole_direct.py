"""A cart balances the pole that is hinged on it; the rules of Isaac Lab's direct task."""

from __future__ import annotations

import torch
from torch import Tensor

from sim.direct import DirectEnv
from sim.managers.action import ActionColumn
from sim.rotations import wrap_to_pi
from sim.sampling import uniform
from sim.step import Log

CART, POLE = 0, 1
"""Columns of the robot's joints."""


class CartpoleDirectEnv(DirectEnv):
    """The action is the force on the cart, `action_scale` N each.

    Weights and bounds are the numbers of `sim.tasks.CARTPOLE_DIRECT`. Isaac Lab's develop branch
    multiplies the reward by the length of a step and wraps the pole's angle, as the manager-based
    task does; its versions 2 and 3 do neither.
    """

    def action_columns(self) -> tuple[ActionColumn, ...]:
        """The force on the cart."""
        return (ActionColumn(self.action_names[0], "effort", self.params["action_scale"], 0.0),)

    def _apply_action(self) -> None:
        """Push the carts."""
        force = self.actions * self.params["action_scale"]
        self.scene.robot.set_joint_effort_target(force, slice(CART, CART + 1))

    def _get_dones(self) -> tuple[Tensor, Tensor]:
        """The cart is out of bounds; the episode has lasted its whole time limit."""
        out_of_bounds = self.scene.robot.joint_pos[:, CART].abs() > self.params["max_cart_pos"]
        return out_of_bounds, self.episode_length >= self.max_episode_length

    def _get_rewards(self) -> Tensor:
        """Weighted sum of five parts, times the length of a step."""
        robot, scale = self.scene.robot, self.params
        alive = (~self.terminated).float()
        angle = wrap_to_pi(robot.joint_pos[:, POLE])
        cart_speed, pole_speed = robot.joint_vel.abs().unbind(1)
        total = (
            scale["rew_scale_alive"] * alive
            + scale["rew_scale_terminated"] * (1.0 - alive)
            + scale["rew_scale_pole_pos"] * angle.square()
            + scale["rew_scale_cart_vel"] * cart_speed
            + scale["rew_scale_pole_vel"] * pole_speed
        )
        return total * self.step_dt

    def _get_observations(self) -> dict[str, Tensor]:
        """Position of the cart (m), angle of the pole (rad), and their velocities, [N, 4]."""
        robot = self.scene.robot
        return {"policy": torch.cat((robot.joint_pos, robot.joint_vel), dim=1)}

    def _reset_idx(self, ids: Tensor) -> None:
        """Draw all four numbers of the state around the default, within the joints' limits."""
        super()._reset_idx(ids)
        robot, reach = self.scene.robot, self.params
        drawn = uniform(self.generator, (-1.0, 1.0), len(ids), 4)
        names = ("cart_pos", "pole_angle", "cart_vel", "pole_vel")
        offset = drawn * drawn.new_tensor([reach[f"initial_{name}"] for name in names])
        limits = robot.soft_joint_pos_limits
        position = robot.default_joint_pos[ids] + offset[:, :2]
        velocity = robot.default_joint_vel[ids] + offset[:, 2:]
        robot.write_joint_state(ids, position.clamp(limits[:, 0], limits[:, 1]), velocity)

    def _start_episodes(self, ids: Tensor) -> Log:
        """Log the share of these episodes that lasted until the time limit."""
        log = super()._start_episodes(ids)
        return log | {"Metrics/success_rate": self.time_outs[ids].float().mean()}
