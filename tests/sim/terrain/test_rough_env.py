"""The Go2 on rough ground: what it senses, and how it moves between levels."""

import io
import math

import mujoco
import numpy as np
import pytest
import torch

from presets.loader import load
from sim.config import EnvConfig
from sim.env import make_env

SMALL = {"num_rows": 10, "num_cols": 6, "border_width": 2.0}
"""Enough ground for a test; each kind of tile has a column or two."""
GROUPS = (
    ("base_lin_vel", 3),
    ("base_ang_vel", 3),
    ("projected_gravity", 3),
    ("velocity_commands", 3),
    ("joint_pos_rel", 12),
    ("joint_vel_rel", 12),
    ("last_action", 12),
    ("height_scan", 187),
)


def rough_env(num_envs=6, seed=1, noise=False, terrain=SMALL, **changes):
    settings = load("go2_rough").preset.env.model_dump()
    settings["terrain"] |= terrain
    if not noise:
        for term in settings["observations"]["policy"].values():
            term["noise"] = None
    config = EnvConfig.model_validate({**settings, "num_envs": num_envs, **changes})
    return make_env(config, "cpu", seed)


def place(env, world, x, y):
    """Put a world's robot at (x, y) m from its origin, in the air above any ground."""
    robot = env.scene.robot
    ids = torch.tensor([world])
    pos = env.scene.env_origins[ids] + torch.tensor([[x, y, 3.0]])
    robot.write_root_pose(ids, pos, torch.tensor([[1.0, 0.0, 0.0, 0.0]]))
    robot.write_root_velocity(ids, torch.zeros(1, 3), torch.zeros(1, 3))
    env.scene.commit(ids)


def end_episodes(env, worlds, command):
    """Let these worlds reach their time limit on the next step, told to move at `command` m/s."""
    term = env.commands.terms["base_velocity"]
    term.value.zero_()
    term.value[:, 0] = command
    term.time_left.fill_(1000.0)
    term.is_standing.zero_()
    env.episode_length[worlds] = env.max_episode_length - 1
    return env.step(torch.zeros(env.num_envs, 12))


def exact_observation(env, world):
    """The 235 columns in float64, from the engine's state alone."""
    physics, model = env.scene.physics, env.scene.physics.model
    data = mujoco.MjData(model)
    data.qpos[:] = physics.qpos[world].numpy()
    data.qvel[:] = physics.qvel[world].numpy()
    mujoco.mj_kinematics(model, data)
    base = model.body("base").id
    rotation = data.xmat[base].reshape(3, 3)
    turn = data.qvel[3:6]
    centre = physics.present_field("body_ipos")[world, base].numpy()
    joints = [model.joint(name) for name in env.scene.robot.joint_names]
    position = np.array([data.qpos[joint.qposadr[0]] for joint in joints])
    default = np.array([model.key_qpos[0, joint.qposadr[0]] for joint in joints])
    velocity = np.array([data.qvel[joint.dofadr[0]] for joint in joints])

    floor = model.geom("floor").id
    yaw = math.atan2(rotation[1, 0], rotation[0, 0])
    x, y, z = data.xpos[base]
    scan = []
    for side in np.linspace(-0.5, 0.5, 11):
        for ahead in np.linspace(-0.8, 0.8, 17):
            point = np.array(
                [
                    x + math.cos(yaw) * ahead - math.sin(yaw) * side,
                    y + math.sin(yaw) * ahead + math.cos(yaw) * side,
                    z + 20.0,
                ]
            )
            down = np.array([0.0, 0.0, -1.0])
            distance = mujoco.mj_rayHfield(model, data, floor, point, down, None)
            scan.append(distance - 20.0 - 0.5 if distance >= 0 else 1.0)
    return np.concatenate(
        (
            rotation.T @ data.qvel[:3] + np.cross(turn, centre),
            turn,
            -rotation[2],
            env.commands.value("base_velocity")[world].double().numpy(),
            position - default,
            velocity,
            env.actions.action[world].double().numpy(),
            np.clip(scan, -1.0, 1.0),
        )
    )


def test_the_observation_has_235_columns_in_order():
    env = rough_env()
    assert env.observation_terms["policy"] == GROUPS
    assert env.observe()["policy"].shape == (6, 235)


def test_every_column_agrees_with_the_engines_state_in_float64():
    n = 40
    env = rough_env(n)
    random = np.random.default_rng(2)
    draw = torch.Generator().manual_seed(2)
    env.step(torch.randn(n, 12, generator=draw))
    half_x, half_y = env.scene.terrain.map.half_extent
    ids = torch.arange(n)
    place_x, place_y = random.uniform(-half_x, half_x, n), random.uniform(-half_y, half_y, n)
    pos = torch.tensor(np.stack((place_x, place_y, random.uniform(0.1, 1.5, n)), 1)).float()
    pos[0, :2] = torch.tensor([half_x - 0.2, half_y - 0.3])  # looks over the edge of the ground
    robot = env.scene.robot
    robot.write_root_pose(ids, pos, torch.randn(n, 4, generator=draw))
    robot.write_root_velocity(
        ids, torch.randn(n, 3, generator=draw), torch.randn(n, 3, generator=draw)
    )
    robot.write_joint_state(
        ids, torch.randn(n, 12, generator=draw), 5 * torch.randn(n, 12, generator=draw)
    )
    env.scene.commit(ids)

    observed = env.observe()["policy"].double().numpy()
    expected = np.stack([exact_observation(env, world) for world in range(n)])
    first = 0
    for name, width in GROUPS:
        columns = slice(first, first + width)
        tolerance = 1e-3 if name == "height_scan" else 2e-5
        np.testing.assert_allclose(
            observed[:, columns], expected[:, columns], rtol=1e-5, atol=tolerance, err_msg=name
        )
        first += width
    assert expected[:, 48:].std() > 0.2
    assert (expected[:, 48:] == 1.0).any()


def test_the_first_observation_of_an_episode_is_that_of_its_new_place_scan_and_contact_included():
    env, twin = rough_env(4), rough_env(4)
    draw = torch.Generator().manual_seed(3)
    for _ in range(25):
        action = 0.3 * torch.randn(4, 12, generator=draw)
        env.step(action)
        twin.step(action)
    assert env.scene.contacts.net_forces_history[2].any()
    before = env.observe()["policy"][2, 48:]
    twin.observe()
    env.scene.physics.qpos[2, :2] += 5.0
    env.episode_length[2] = env.max_episode_length - 1
    env.step(torch.ones(4, 12))
    twin.step(torch.ones(4, 12))

    observed, others = env.observe()["policy"], twin.observe()["policy"]
    expected = exact_observation(env, 2)
    np.testing.assert_allclose(observed[2, :48], expected[:48], atol=1e-5)
    np.testing.assert_allclose(observed[2, 48:], expected[48:], atol=1e-3)
    assert (before - observed[2, 48:]).abs().max() > 0.05  # the scan has moved
    assert not observed[2, 36:48].any()  # no action yet
    contacts = env.scene.contacts
    assert not contacts.net_forces_history[2].any()
    assert not (contacts.air_ticks | contacts.contact_ticks | contacts.last_air_ticks)[2].any()
    distance = env.scene.robot.root_pos_w[2, :2] - env.scene.env_origins[2, :2]
    assert (distance.abs() <= 0.5 + 1e-4).all()
    untouched = torch.tensor([0, 1, 3])
    assert torch.equal(observed[untouched], others[untouched])
    env.close()
    twin.close()


def test_on_finer_cells_robots_stand_walk_and_see_the_finer_ground():
    env = rough_env(6, terrain={**SMALL, "horizontal_scale": 0.05})
    rows, columns = env.scene.terrain.map.heights.shape
    assert (rows, columns) == ((6 * 8 + 4) * 20 + 1, (10 * 8 + 4) * 20 + 1)
    draw = torch.Generator().manual_seed(6)
    for _ in range(20):
        env.step(0.3 * torch.randn(6, 12, generator=draw))
    assert env.scene.contacts.current_contact_time.any()
    observed = env.observe()["policy"]
    for world in range(6):
        expected = exact_observation(env, world)
        np.testing.assert_allclose(observed[world, 48:], expected[48:], atol=1e-3)
    env.close()


def test_the_scan_has_noise_within_a_tenth_of_a_metre_and_stays_within_one():
    env = rough_env(64, noise=True)
    first, second = env.observe()["policy"][:, 48:], env.observe()["policy"][:, 48:]
    difference = (first - second).abs()
    assert 0.05 < difference.mean() < 0.08  # of two uniform numbers of width 0.2: 0.2 / 3
    assert difference.max() <= 0.2
    assert first.abs().max() <= 1.0


def test_robots_start_on_their_tiles_with_their_feet_above_the_ground():
    env = rough_env(240)
    away = env.scene.robot.root_pos_w - env.scene.env_origins
    assert (away[:, :2].abs() <= 0.5 + 1e-5).all()
    torch.testing.assert_close(away[:, 2], torch.full((240,), 0.4))
    # 20 steps at rest: nobody was thrown up or fell through
    for _ in range(20):
        env.step(torch.zeros(240, 12))
    height = env.observe()["policy"][:, 48:].mean(1)
    assert (height > -0.5).all()
    assert (env.scene.robot.root_lin_vel_w.norm(dim=1) < 3.0).all()


def test_the_first_reset_promotes_nobody():
    env = rough_env(16, terrain={**SMALL, "max_init_terrain_level": 0})
    assert env.scene.terrain.levels.tolist() == [0] * 16


def test_worlds_go_up_by_half_a_tile_and_down_by_less_than_half_their_way():
    env = rough_env(6)
    terrain = env.scene.terrain
    terrain.move(env.all_ids, 4 - terrain.levels)
    env.scene.reset(env.all_ids)
    # told 0.3 m/s for 20 s: half of the way is 3 m; half of a tile is 4 m
    for world, distance in enumerate((4.1, 3.9, 3.1, 2.9, 0.0, 4.1)):
        place(env, world, distance, 0.0)
    feedback = end_episodes(env, torch.arange(5), 0.3)
    assert feedback.time_outs.tolist() == [True] * 5 + [False]
    assert terrain.levels.tolist() == [5, 4, 4, 3, 3, 4]
    # the very same reset spawns there
    for world in range(5):
        origin = terrain.map.origins[terrain.levels[world], terrain.columns[world]]
        assert env.scene.env_origins[world].tolist() == pytest.approx(origin.tolist())
        away = env.scene.robot.root_pos_w[world] - env.scene.env_origins[world]
        assert away[:2].abs().max() <= 0.5 + 1e-5
        assert away[2] == pytest.approx(0.4)
    # and the first observation of the new episode sees the new ground
    observed = env.observe()["policy"]
    for world in range(5):
        expected = exact_observation(env, world)
        np.testing.assert_allclose(observed[world, 48:], expected[48:], atol=1e-3)

    log = feedback.log
    assert log["Curriculum/terrain_levels"] == pytest.approx(23 / 6)
    assert feedback.counts == {
        "Curriculum/terrain_levels/promotions": 1,
        "Curriculum/terrain_levels/demotions": 2,
    }


def test_an_early_fall_is_held_against_the_way_of_the_whole_time_limit():
    env = rough_env(2)
    terrain = env.scene.terrain
    terrain.move(env.all_ids, 4 - terrain.levels)
    env.scene.reset(env.all_ids)
    for world in range(2):
        place(env, world, 0.5, 0.0)
    term = env.commands.terms["base_velocity"]
    term.value.zero_()
    term.value[:, 0] = 0.3
    term.time_left.fill_(1000.0)
    env.episode_length[:] = 49  # a second: as far as it was told to come in that time
    falls = torch.tensor([True, False])
    env.terminations.terms["base_contact"] = lambda env: falls
    feedback = env.step(torch.zeros(2, 12))
    assert feedback.terminated.tolist() == [True, False]
    assert terrain.levels.tolist() == [3, 4]
    env.close()


def test_a_standing_world_stays_and_a_distance_counts_in_the_plane():
    env = rough_env(2)
    terrain = env.scene.terrain
    terrain.move(env.all_ids, 4 - terrain.levels)
    env.scene.reset(env.all_ids)
    place(env, 0, 0.0, 0.0)
    place(env, 1, -3.0, -3.0)  # 4.24 m
    end_episodes(env, env.all_ids, 0.0)
    assert terrain.levels.tolist() == [4, 5]


def test_from_the_last_level_worlds_go_anywhere_and_from_the_first_not_below():
    env = rough_env(300)
    terrain = env.scene.terrain
    terrain.move(env.all_ids, 9 - terrain.levels)
    env.scene.reset(env.all_ids)
    for world in range(150):
        place(env, world, 5.0, 0.0)
    terrain.levels[150:] = 0
    feedback = end_episodes(env, env.all_ids, 1.0)
    counts = torch.bincount(terrain.levels[:150], minlength=10)
    assert (counts > 0).all()  # 15 of each, standard deviation 3.7
    assert counts.max() < 15 + 5 * 3.7
    assert (terrain.levels[150:] == 0).all()
    assert feedback.counts["Curriculum/terrain_levels/promotions"] == 150
    assert feedback.counts["Curriculum/terrain_levels/demotions"] == 0
    # the mean fell from 4.5 by these re-draws alone; who was at the top is told beside it
    assert feedback.log["Curriculum/terrain_levels/reached_top"] == 1.0


def test_levels_are_logged_by_kind_and_as_a_histogram():
    env = rough_env(12)
    terrain = env.scene.terrain
    terrain.move(env.all_ids, torch.arange(12) % 9 - terrain.levels)
    env.scene.reset(env.all_ids)
    log = end_episodes(env, torch.tensor([0]), 0.0).log
    # six columns by shares of .2, .2, .2, .2, .1, .1: kinds 0 0 1 2 3 4, two worlds each
    assert log["Curriculum/terrain_levels/pyramid_stairs"] == pytest.approx((0 + 1 + 2 + 3) / 4)
    assert log["Curriculum/terrain_levels/boxes"] == pytest.approx((6 + 7) / 2)
    histogram = [log[f"Curriculum/terrain_levels/boxes/level_{k}"] for k in range(10)]
    assert histogram == [0, 0, 0, 0, 0, 0, 1, 1, 0, 0]
    # a kind without worlds has no mean
    assert "Curriculum/terrain_levels/hf_pyramid_slope_inv" not in log


def test_a_world_that_breaks_keeps_its_level():
    env = rough_env(4)
    terrain = env.scene.terrain
    terrain.move(env.all_ids, 4 - terrain.levels)
    env.scene.reset(env.all_ids)
    env.scene.physics.qvel[2, 4] = math.nan
    feedback = env.step(torch.zeros(4, 12))
    assert feedback.terminated.tolist() == [False, False, True, False]
    assert terrain.levels.tolist() == [4, 4, 4, 4]
    assert env.observe()["policy"].isfinite().all()


def test_two_envs_of_one_seed_are_alike_and_a_saved_one_continues_bit_for_bit():
    first, second = rough_env(8, noise=True), rough_env(8, noise=True)
    actions = torch.randn(12, 8, 12, generator=torch.Generator().manual_seed(0))
    first.episode_length[:] = second.episode_length[:] = 995
    for step in range(6):
        for env in (first, second):
            env.step(actions[step])
    assert torch.equal(first.observe()["policy"], second.observe()["policy"])

    buffer = io.BytesIO()
    torch.save(first.state_dict(), buffer)
    buffer.seek(0)
    resumed = rough_env(8, noise=True)
    assert not torch.equal(resumed.scene.terrain.levels, first.scene.terrain.levels)
    resumed.load_state_dict(torch.load(buffer, weights_only=True))
    assert torch.equal(resumed.scene.terrain.levels, first.scene.terrain.levels)
    for step in range(6, 12):
        ours, theirs = first.step(actions[step]), resumed.step(actions[step])
        assert torch.equal(ours.reward, theirs.reward)
        assert torch.equal(first.observe()["policy"], resumed.observe()["policy"])
    assert torch.equal(first.scene.env_origins, resumed.scene.env_origins)


def test_ground_without_curriculum_is_drawn_tile_by_tile():
    env = rough_env(12, terrain={**SMALL, "curriculum": False, "max_init_terrain_level": 9})
    log = end_episodes(env, torch.tensor([0]), 0.0).log
    assert sum(v for tag, v in log.items() if "/level_" in tag) == 12
