"""The shipped tasks against the numbers of Isaac Lab's (develop branch), on the GPU's settings."""

import math

import pytest

from presets.loader import load

PI = pytest.approx(math.pi)


def gpu(name):
    return load(name, device="cuda").preset


def terms(table):
    """Each term by its key: its function, and all numbers that it is given."""
    return {
        name: (settings.term or name, {**settings.params, **own(settings)})
        for name, settings in table.items()
    }


def own(settings):
    """What a manager itself reads of a term, where it is not the default."""
    keys = ("weight", "noise", "clip", "mode", "interval_range_s", "time_out")
    found = {key: getattr(settings, key, None) for key in keys}
    if getattr(settings, "scale", 1.0) != 1.0 and "scale" not in settings.params:
        found["scale"] = settings.scale
    return {key: value for key, value in found.items() if value is not None and value is not False}


def ranges(**limits):
    return {axis: [-limit, limit] for axis, limit in limits.items()}


GO2_REWARDS = {
    "track_lin_vel_xy_exp": {"weight": 1.5, "std": 0.5},
    "track_ang_vel_z_exp": {"weight": 0.75, "std": 0.5},
    "lin_vel_z_l2": {"weight": -2.0},
    "ang_vel_xy_l2": {"weight": -0.05},
    "dof_torques_l2": {"weight": -2e-4},
    "dof_acc_l2": {"weight": -2.5e-7},
    "action_rate_l2": {"weight": -0.01},
    "feet_air_time": {"weight": 0.25, "bodies": ".*_foot", "threshold": 0.5},
    "flat_orientation_l2": {"weight": -2.5},
    "dof_pos_limits": {"weight": 0.0},
}


def test_the_go2_has_isaac_labs_time_scales_and_action():
    env = gpu("go2_flat").env
    assert (env.physics_dt, env.decimation, env.step_dt) == (0.005, 4, 0.02)
    assert (env.episode_length_s, env.max_episode_length) == (20.0, 1000)
    assert (env.num_envs, env.env_spacing) == (4096, 2.5)
    assert terms(env.actions) == {"joint_pos": ("joint_position", {"scale": 0.25})}


def test_the_go2_is_told_what_isaac_labs_is():
    (command,) = terms(gpu("go2_flat").env.commands).values()
    assert command == (
        "uniform_velocity",
        {
            "lin_vel_x": [-1.0, 1.0],
            "lin_vel_y": [-1.0, 1.0],
            "ang_vel_z": [-1.0, 1.0],
            "heading": [pytest.approx(-math.pi), PI],
            "resampling_time": [10.0, 10.0],
            "rel_heading_envs": 1.0,
            "rel_standing_envs": 0.02,
            "heading_control_stiffness": 0.5,
        },
    )


def test_the_go2_sees_what_isaac_labs_does_in_its_order_with_its_noise():
    group = terms(gpu("go2_flat").env.observations["policy"])
    assert list(group.items()) == [
        ("base_lin_vel", ("base_lin_vel", {"noise": (-0.1, 0.1)})),
        ("base_ang_vel", ("base_ang_vel", {"noise": (-0.2, 0.2)})),
        ("projected_gravity", ("projected_gravity", {"noise": (-0.05, 0.05)})),
        ("velocity_commands", ("velocity_commands", {})),
        ("joint_pos_rel", ("joint_pos_rel", {"noise": (-0.01, 0.01)})),
        ("joint_vel_rel", ("joint_vel_rel", {"noise": (-1.5, 1.5)})),
        ("last_action", ("last_action", {})),
    ]
    scan = gpu("go2_rough").env.observations["policy"]["height_scan"]
    assert scan.params == {
        "length": 1.6,
        "width": 1.0,
        "resolution": 0.1,
        "offset": 0.5,
        "miss": 1.0,
    }


def test_the_go2_is_paid_as_isaac_labs_is():
    assert terms(gpu("go2_flat").env.rewards) == {
        name: (name, numbers) for name, numbers in GO2_REWARDS.items()
    }
    rough = {name: n for name, n in GO2_REWARDS.items() if name != "flat_orientation_l2"}
    rough["feet_air_time"] = {**rough["feet_air_time"], "weight": 0.01}
    assert terms(gpu("go2_rough").env.rewards) == {name: (name, n) for name, n in rough.items()}


def test_the_go2_ends_and_begins_as_isaac_labs_does():
    env = gpu("go2_flat").env
    assert terms(env.terminations) == {
        "time_out": ("time_out", {"time_out": True}),
        "base_contact": ("illegal_contact", {"bodies": "base", "threshold": 1.0}),
    }
    startup, reset = {"mode": "startup"}, {"mode": "reset"}
    every_axis = ranges(x=0.5, y=0.5, z=0.5, roll=0.5, pitch=0.5, yaw=0.5)
    assert terms(env.events) == {
        "physics_material": (
            "randomize_rigid_body_material",
            {**startup, "friction_range": [0.8, 0.8]},
        ),
        "add_base_mass": (
            "randomize_rigid_body_mass",
            {
                **startup,
                "bodies": "base",
                "scale_range": [1 / 1.25, 1.25],
                "distribution": "log_uniform",
            },
        ),
        "base_com": (
            "randomize_rigid_body_com",
            {**startup, "bodies": "base", "com_range": ranges(x=0.05, y=0.05, z=0.01)},
        ),
        "reset_base": (
            "reset_root_state_uniform",
            {
                **reset,
                "pose_range": ranges(x=0.5, y=0.5, yaw=3.14),
                "velocity_range": every_axis,
            },
        ),
        "reset_robot_joints": (
            "reset_joints_by_scale",
            {**reset, "position_range": [0.5, 1.5], "velocity_range": [0.0, 0.0]},
        ),
        "push_robot": (
            "push_by_setting_velocity",
            {
                "mode": "interval",
                "interval_range_s": (10.0, 15.0),
                "velocity_range": ranges(x=0.5, y=0.5),
            },
        ),
    }


def learner(name):
    """What differs between the tasks' learners; the rest is asserted to be what all have."""
    trainer = gpu(name).trainer
    assert (trainer.learning_rate, trainer.schedule, trainer.desired_kl) == (1e-3, "adaptive", 0.01)
    assert (trainer.gamma, trainer.lam, trainer.clip_param) == (0.99, 0.95, 0.2)
    assert (trainer.value_loss_coef, trainer.use_clipped_value_loss) == (1.0, True)
    assert (trainer.max_grad_norm, trainer.num_mini_batches, trainer.save_interval) == (1.0, 4, 50)
    assert trainer.clip_actions is None
    actor, critic = trainer.actor, trainer.critic
    assert actor.hidden_dims == critic.hidden_dims
    assert (actor.activation, critic.activation, actor.init_std) == ("elu", "elu", 1.0)
    assert actor.std_type == "scalar"
    assert not actor.obs_normalization
    assert not critic.obs_normalization
    return (
        trainer.num_steps_per_env,
        trainer.num_iterations,
        trainer.num_learning_epochs,
        trainer.entropy_coef,
        actor.hidden_dims,
    )


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("go2_flat", (24, 300, 5, 0.01, (128, 128, 128))),
        ("go2_rough", (24, 1500, 5, 0.01, (512, 256, 128))),
        ("franka_reach", (24, 1000, 8, 0.01, (64, 64))),
        ("cartpole", (16, 150, 5, 0.005, (32, 32))),
        ("cartpole_direct", (16, 150, 5, 0.005, (32, 32))),
    ],
)
def test_each_learns_with_isaac_labs_numbers(name, numbers):
    assert learner(name) == numbers


def test_the_arm_reaches_for_what_isaac_labs_does():
    env = gpu("franka_reach").env
    assert (env.physics_dt, env.decimation) == (pytest.approx(1 / 120), 4)
    assert (env.episode_length_s, env.max_episode_length, env.num_envs) == (12.0, 360, 4096)
    assert terms(env.actions) == {
        "arm_action": ("joint_position", {"joints": "panda_joint.*", "scale": 0.5})
    }
    assert terms(env.commands) == {
        "ee_pose": (
            "uniform_pose",
            {
                "body": "panda_hand",
                "pos_x": [0.35, 0.65],
                "pos_y": [-0.2, 0.2],
                "pos_z": [0.15, 0.5],
                "roll": [0.0, 0.0],
                "pitch": [PI, PI],
                "yaw": [-3.14, 3.14],
                "resampling_time": [4.0, 4.0],
                "success_threshold": 0.05,
            },
        )
    }
    assert terms(env.observations["policy"]) == {
        "joint_pos_rel": ("joint_pos_rel", {"noise": (-0.01, 0.01)}),
        "joint_vel_rel": ("joint_vel_rel", {"noise": (-0.01, 0.01)}),
        "pose_command": ("generated_commands", {"command_name": "ee_pose"}),
        "last_action": ("last_action", {}),
    }
    hand = {"body": "panda_hand"}
    assert terms(env.rewards) == {
        "position_tracking": ("position_command_error", {**hand, "weight": -0.2}),
        "position_tracking_fine": (
            "position_command_error_tanh",
            {**hand, "weight": 0.1, "std": 0.1},
        ),
        "orientation_tracking": ("orientation_command_error", {**hand, "weight": -0.1}),
        "action_rate": ("action_rate_l2", {"weight": -1e-4}),
        "action_magnitude": ("action_l2", {"weight": -0.005}),
        "joint_vel": ("joint_vel_l2", {"weight": -1e-4, "joints": "panda_joint.*"}),
    }
    assert terms(env.terminations) == {"time_out": ("time_out", {"time_out": True})}
    assert terms(env.events) == {
        "reset_robot_joints": (
            "reset_joints_by_scale",
            {"mode": "reset", "position_range": [0.5, 1.5], "velocity_range": [0.0, 0.0]},
        )
    }
    assert terms(env.curriculum) == {
        name: ("modify_reward_weight", {"reward": name, "weight": weight, "num_steps": 4500})
        for name, weight in (("action_rate", -0.005), ("joint_vel", -0.001))
    }


def test_the_carts_pole_is_isaac_labs():
    env, direct = gpu("cartpole").env, gpu("cartpole_direct").env
    for one in (env, direct):
        assert (one.physics_dt, one.decimation) == (pytest.approx(1 / 120), 2)
        assert (one.episode_length_s, one.max_episode_length) == (5.0, 300)
        assert (one.num_envs, one.env_spacing) == (4096, 4.0)
    cart, pole = {"joints": "slider_to_cart"}, {"joints": "cart_to_pole"}
    assert terms(env.actions) == {"joint_effort": ("joint_effort", {**cart, "scale": 100.0})}
    assert list(env.observations["policy"]) == ["joint_pos_rel", "joint_vel_rel"]
    assert terms(env.rewards) == {
        "alive": ("is_alive", {"weight": 1.0}),
        "terminating": ("is_terminated", {"weight": -2.0}),
        "pole_pos": ("joint_pos_target_l2", {**pole, "weight": -1.0, "target": 0.0}),
        "cart_vel": ("dof_vel_l1", {**cart, "weight": -0.01}),
        "pole_vel": ("dof_vel_l1", {**pole, "weight": -0.005}),
    }
    assert terms(env.terminations) == {
        "time_out": ("time_out", {"time_out": True}),
        "cart_out_of_bounds": ("joint_pos_out_of_manual_limit", {**cart, "bounds": [-3.0, 3.0]}),
    }
    quarter = [pytest.approx(-math.pi / 4), pytest.approx(math.pi / 4)]
    reset = {"mode": "reset"}
    assert terms(env.events) == {
        "reset_cart_position": (
            "reset_joints_by_offset",
            {**cart, **reset, "position_range": [-1.0, 1.0], "velocity_range": [-0.5, 0.5]},
        ),
        "reset_pole_position": (
            "reset_joints_by_offset",
            {**pole, **reset, "position_range": quarter, "velocity_range": quarter},
        ),
    }
    assert dict(direct.params or {}) == {
        "action_scale": 100.0,
        "max_cart_pos": 3.0,
        "initial_cart_pos": 1.0,
        "initial_cart_vel": 0.5,
        "initial_pole_angle": pytest.approx(math.pi / 4),
        "initial_pole_vel": pytest.approx(math.pi / 4),
        "rew_scale_alive": 1.0,
        "rew_scale_terminated": -2.0,
        "rew_scale_pole_pos": -1.0,
        "rew_scale_cart_vel": -0.01,
        "rew_scale_pole_vel": -0.005,
    }
