"""The rough preset against Isaac Lab's numbers (develop branch)."""

import pytest

from presets.loader import load
from presets.problems import PresetError
from sim.config import TerrainConfig
from tests.presets.tiny import write


def test_on_a_gpu_it_is_isaac_labs_task():
    preset = load("go2_rough", device="cuda").preset
    flat = load("go2_flat", device="cuda").preset
    env, trainer = preset.env, preset.trainer
    assert env.num_envs == 4096
    assert trainer.num_steps_per_env == 24
    assert trainer.num_iterations == 1500
    assert (trainer.num_mini_batches, trainer.num_learning_epochs) == (4, 5)
    assert trainer.actor.hidden_dims == trainer.critic.hidden_dims == (512, 256, 128)
    assert trainer.entropy_coef == 0.01
    assert env.terrain == TerrainConfig()
    assert env.rewards["feet_air_time"].weight == 0.01
    assert env.rewards["feet_air_time"].params == flat.env.rewards["feet_air_time"].params
    assert "flat_orientation_l2" not in env.rewards
    assert {name for name in flat.env.rewards if name not in env.rewards} == {"flat_orientation_l2"}
    assert list(env.observations["policy"]) == [*flat.env.observations["policy"], "height_scan"]
    scan = env.observations["policy"]["height_scan"]
    assert (scan.noise, scan.clip, scan.scale) == ((-0.1, 0.1), (-1.0, 1.0), 1.0)
    assert env.events == flat.env.events
    assert env.commands == flat.env.commands
    assert env.terminations == flat.env.terminations


def test_on_the_cpu_it_has_fewer_worlds_on_the_same_ground():
    resolved = load("go2_rough", device="cpu")
    assert resolved.uses_cpu_table
    assert resolved.preset.env.num_envs == 512
    assert resolved.preset.env.terrain == TerrainConfig()
    assert (
        resolved.preset.env.model_copy(update={"num_envs": 4096})
        == load("go2_rough", device="cuda").preset.env
    )


def test_a_preset_of_ones_own_takes_finer_cells_with_one_line(tmp_path):
    fine = 'extends = "go2_rough"\n[env.terrain]\nhorizontal_scale = 0.05\n'
    write(tmp_path, fine_stairs=fine)
    terrain = load("fine_stairs").preset.env.terrain
    assert terrain.cells_per_tile == 160
    assert terrain.border_cells == 400
    assert terrain.sub_terrains == TerrainConfig().sub_terrains


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("env.terrain.sizze=3.0", "unknown key; did you mean env.terrain.size?"),
        (
            "env.terrain.sub_terrains.boxes.grid_widht=0.3",
            "unknown key; did you mean env.terrain.sub_terrains.boxes.grid_width?",
        ),
        ("env.terrain.horizontal_scale=0.3", "not a multiple of horizontal_scale = 0.3"),
        (
            "env.terrain.sub_terrains.boxes.grid_width=100.0",
            "--set env.terrain.sub_terrains.boxes.grid_width=100.0: sub_terrains.boxes.grid_width "
            "= 100: a column is wider than its tile, a tile has 8 m",
        ),
        (
            "env.terrain.sub_terrains.pyramid_stairs.platform_width=9.0",
            "env.terrain.sub_terrains.pyramid_stairs: sub_terrains.pyramid_stairs: platform and "
            "borders take 11 m, a tile has 8 m",
        ),
        ("env.terrain.vertical_scale=10.0", "must be at most 0.1"),
        ("env.observations.policy.height_scan.lenght=2.0", "did you mean length?"),
        ('env.robot="cartpole"', "env.terrain: the cartpole does not stand on the ground"),
    ],
)
def test_wrong_ground_is_refused_with_its_place_and_the_nearest_name(setting, sentence):
    with pytest.raises(PresetError) as refused:
        load("go2_rough", [setting])
    assert sentence in refused.value.messages[0]


@pytest.mark.parametrize(
    "setting",
    [
        'env.curriculum.terrain_levels.term="terrain_levels_vel"',
        "env.observations.policy.height_scan.offset=0.5",
    ],
)
def test_terms_of_rough_ground_are_refused_on_flat_ground(setting):
    with pytest.raises(PresetError, match="needs terrain with levels"):
        load("go2_flat", [setting])
