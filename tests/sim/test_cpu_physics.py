"""The CPU engine: exact, isolated by world, quiet."""

import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from mujoco.batch import SimulationError

from sim.physics.cpu import CpuPhysics
from sim.robots import find_robot


def go2(num_worlds, num_threads=2):
    model = mujoco.MjModel.from_xml_path(str(find_robot("go2").mjcf))
    physics = CpuPhysics(model, num_worlds, num_threads)
    generator = torch.Generator().manual_seed(3)
    physics.qvel[:] = torch.rand((num_worlds, 18), generator=generator, dtype=torch.float64) - 0.5
    return physics


def push(physics, ticks, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for k in range(ticks):
        shape = physics.ctrl.shape
        physics.ctrl[:] = 10 * torch.rand(shape, generator=generator, dtype=torch.float64) - 5
        physics.tick(last=k % 4 == 3)


@pytest.mark.parametrize("num_threads", [1, 2])
def test_worlds_move_bit_for_bit_as_mj_step_moves_one(num_threads):
    physics = go2(3, num_threads)
    singles = []
    for world in range(3):
        data = mujoco.MjData(physics.model)
        mujoco.mj_resetDataKeyframe(physics.model, data, 0)
        data.qvel[:] = physics.qvel[world].numpy()
        singles.append(data)
    generator = torch.Generator().manual_seed(0)
    for k in range(60):
        control = 10 * torch.rand((3, 12), generator=generator, dtype=torch.float64) - 5
        physics.ctrl[:] = control
        physics.tick(last=k % 4 == 3)
        for world, data in enumerate(singles):
            data.ctrl[:] = control[world].numpy()
            mujoco.mj_step(physics.model, data)
    for world, data in enumerate(singles):
        assert physics.qpos[world].tolist() == data.qpos.tolist()
        assert physics.qvel[world].tolist() == data.qvel.tolist()


def test_after_the_last_tick_derived_readings_describe_the_new_state():
    physics = go2(2)
    push(physics, 8)
    data = mujoco.MjData(physics.model)
    for world in range(2):
        data.qpos[:], data.qvel[:] = physics.qpos[world].numpy(), physics.qvel[world].numpy()
        mujoco.mj_forward(physics.model, data)
        assert physics.body_pos[world].tolist() == data.xpos.tolist()
        assert physics.body_rotation[world].flatten(1).tolist() == data.xmat.tolist()


def test_reset_and_forward_touch_their_worlds_alone():
    physics = go2(4)
    push(physics, 8)
    before = [physics.qpos.clone(), physics.qvel.clone(), physics.body_pos.clone()]
    physics.reset(torch.tensor([2]))
    physics.forward(torch.tensor([2]))
    others = [0, 1, 3]
    for old, new in zip(before, [physics.qpos, physics.qvel, physics.body_pos], strict=True):
        assert torch.equal(old[others], new[others])
    assert physics.qpos[2].tolist() == physics.model.key_qpos[0].tolist()
    assert not physics.qvel[2].any()
    assert physics.body_pos[2, 1, 2] == 0.4


def test_a_reset_world_forgets_its_warm_start():
    physics, fresh = go2(1), go2(1)
    push(physics, 40)
    for engine in (physics, fresh):
        engine.reset(torch.tensor([0]))
        push(engine, 20, seed=9)
    assert torch.equal(physics.qpos, fresh.qpos)


def test_a_world_that_goes_bad_is_named_and_leaves_the_others_alone():
    physics, healthy = go2(8), go2(8)
    physics.qvel[3, 7] = torch.nan
    for engine in (physics, healthy):
        push(engine, 4)
    assert physics.bad_worlds().nonzero().tolist() == [[3]]
    assert physics.bad_quantity(3) == "qvel"
    others = [0, 1, 2, 4, 5, 6, 7]
    assert torch.equal(physics.qpos[others], healthy.qpos[others])
    assert torch.equal(physics.sensordata[others], healthy.sensordata[others])
    assert not physics.bad_worlds().any()  # told once
    assert physics.qpos.isfinite().all()


def test_a_world_may_go_bad_again_after_its_reset():
    physics = go2(2)
    for _ in range(2):
        physics.qpos[1, 0] = torch.inf
        push(physics, 1)
        assert physics.bad_worlds().tolist() == [False, True]
        assert physics.bad_quantity(1) == "qpos"
        physics.reset(torch.tensor([1]))


def test_warnings_reach_neither_the_folder_nor_the_screen(tmp_path):
    code = f"""
import mujoco, torch
from sim.physics.cpu import CpuPhysics
physics = CpuPhysics(mujoco.MjModel.from_xml_path({str(find_robot("cartpole").mjcf)!r}), 2)
physics.qvel[0, 0] = torch.nan
physics.tick(True)
assert physics.bad_worlds()[0]
"""
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (out.stdout, out.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_a_model_field_may_differ_between_worlds():
    physics = go2(2)
    physics.qvel.zero_()
    assert physics.present_field("body_mass").shape == (1, 18)
    mass = physics.model_field("body_mass")
    mass[1, 1] *= 2
    physics.model_changed()
    assert physics.present_field("body_mass")[:, 1].tolist() == [6.921, 2 * 6.921]
    for _ in range(200):
        physics.tick(last=False)
    # limp robots lie on the floor: the sensors add up to the weights
    weight = -physics.sensordata.view(2, -1, 3)[:, :, 2].sum(1)
    assert weight[1] - weight[0] == pytest.approx(6.921 * 9.81, rel=0.1)


def test_constants_follow_each_worlds_own_mass_and_centre_as_mj_set_const_makes_them():
    factors = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
    physics = go2(3)
    physics.model_field("body_mass")[:, 1] *= factors
    physics.model_field("body_inertia")[:, 1] *= factors[:, None]
    physics.model_field("body_ipos")[:, 1, 0] += 0.05 * factors
    physics.model_changed()
    start = physics.qvel.numpy().copy()
    generator = torch.Generator().manual_seed(1)
    controls = 10 * torch.rand((120, 3, 12), generator=generator, dtype=torch.float64) - 5
    for control in controls:
        physics.ctrl[:] = control
        physics.tick(last=False)
    for world, factor in enumerate(factors.tolist()):
        model = mujoco.MjModel.from_xml_path(str(find_robot("go2").mjcf))
        model.body_mass[1] *= factor
        model.body_inertia[1] *= factor
        model.body_ipos[1, 0] += 0.05 * factor
        mujoco.mj_setConst(model, mujoco.MjData(model))
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, 0)
        data.qvel[:] = start[world]
        touched = 0
        for control in controls:
            data.ctrl[:] = control[world]
            mujoco.mj_step(model, data)
            touched += data.ncon
        assert touched > 20  # contacts weigh by the constants
        np.testing.assert_array_equal(physics.qpos[world].numpy(), data.qpos)


def test_an_unknown_model_field_is_refused():
    with pytest.raises(ValueError, match="body_mas"):
        go2(1).model_field("body_mas")


def test_a_restored_state_continues_bit_for_bit():
    physics, twin = go2(3), go2(3)
    physics.model_field("body_mass")[:, 1] *= torch.tensor([0.9, 1.0, 1.2])
    physics.model_changed()
    twin.model_field("body_ipos")[:, 1] += 0.01  # of an earlier life, to be forgotten
    push(physics, 32)
    twin.load_state_dict(physics.state_dict())
    assert torch.equal(twin.body_pos, physics.body_pos)
    for engine in (physics, twin):
        push(engine, 30, seed=5)
    assert torch.equal(twin.qpos, physics.qpos)
    assert torch.equal(twin.qvel, physics.qvel)
    assert torch.equal(twin.sensordata, physics.sensordata)


def test_a_state_of_other_size_is_refused():
    with pytest.raises(ValueError, match="the saved physics has worlds x state"):
        go2(2).load_state_dict(go2(3).state_dict())


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_closing_gives_the_threads_back():
    def running():
        return len(list(Path("/proc/self/task").iterdir()))

    before = running()
    physics = go2(8, num_threads=4)
    assert running() > before
    physics.close()
    assert running() == before


def test_a_reset_world_is_as_a_new_one_its_warm_start_and_clock_included():
    used, new = go2(3), go2(3)
    push(used, 40)
    assert used.sensordata[1].any()
    used.reset(torch.tensor([1]))
    new.reset()
    state, fresh = (physics.state_dict()["state"] for physics in (used, new))
    assert torch.equal(state[1], fresh[1])
    assert not torch.equal(state[0], fresh[0])
    assert not used.sensordata[1].any()
    used.reset(torch.tensor([0, 2]))
    for physics in (used, new):
        push(physics, 20)
    assert torch.equal(used.qpos, new.qpos)
    assert torch.equal(used.sensordata, new.sensordata)


class Failing:
    """The engine's batch, in whose second world MuJoCo raises an error at the next tick."""

    def __init__(self, batch):
        self._batch = batch
        self.resets = []

    def __getattr__(self, name):
        return getattr(self._batch, name)

    def step(self, **how):
        raise SimulationError(np.array([1]), "mj_step: it cannot go on")

    def reset(self, ids, **how):
        self.resets.append(ids.tolist())
        self._batch.reset(ids, **how)


def test_a_world_in_which_the_engine_failed_is_told_of_once_and_reset_by_the_engine():
    physics = go2(3)
    batch = physics._batch
    physics._batch = failing = Failing(batch)
    physics.tick(last=True)
    assert physics.bad_worlds().tolist() == [False, True, False]
    assert physics.bad_quantity(1) == "engine error"
    assert not physics.bad_worlds().any()
    physics.reset(torch.tensor([0]))  # another one first: the failed world still waits for its own
    physics.reset(torch.tensor([1]))
    physics.reset(torch.tensor([2]))
    assert failing.resets == [[0], [1]]
    physics._batch = batch
    physics.tick(last=True)
    assert not physics.bad_worlds().any()


PUCK = """
<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <geom type="plane" size="0 0 1"/>
    <body pos="0 0 0.05"><freejoint/><geom type="box" size="0.1 0.1 0.05" priority="1"/></body>
  </worldbody>
</mujoco>
"""


def test_worlds_of_different_friction_slide_apart_and_may_be_given_new_friction_at_a_reset():
    physics = CpuPhysics(mujoco.MjModel.from_xml_string(PUCK), 3)
    friction = physics.model_field("geom_friction")

    def slide(*coefficients):
        physics.reset(torch.arange(3))
        friction[:, 1, 0] = torch.tensor(coefficients, dtype=torch.float64)
        physics.model_changed()
        physics.qvel[:, 0] = 2.0
        for _ in range(200):
            physics.tick(last=False)
        return physics.qpos[:, 0].tolist()

    first = slide(0.01, 2.0, 0.01)
    assert first[0] == pytest.approx(2.0 - 0.01 * 9.81 / 2, rel=0.02)  # v t - mu g t^2 / 2
    assert first[0] > 5 * first[1]
    second = slide(2.0, 2.0, 0.01)
    assert second[0] == first[1]
    assert second[2] == first[2]
