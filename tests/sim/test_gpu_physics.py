"""The GPU engine against MuJoCo itself, on Warp's CPU device and on a GPU where there is one.

Kernels take a minute to compile the first time and are cached; all tests share one model, so that
they share the kernels.
"""

import re
import subprocess
import sys
import threading

import mujoco
import numpy as np
import pytest
import torch

import sim.physics.gpu
import sim.scene
from sim.config import EnvConfig
from sim.physics import make_physics
from sim.physics.base import PhysicsError
from sim.physics.capacity import Capacity, initial_capacity
from sim.physics.cpu import CpuPhysics
from sim.physics.gpu import CONSTANTS, STATE, GpuPhysics
from sim.physics.graph import Stream
from sim.physics.self_test import compare_with_mujoco
from sim.robots import find_robot
from sim.scene import Scene
from sim.warp_start import wp

N = 8


class Ears:
    def __init__(self):
        self.progressed, self.notices = [], []

    def progress(self, text):
        self.progressed.append(text)

    def notice(self, text):
        self.notices.append(text)


def go2():
    return mujoco.MjModel.from_xml_path(str(find_robot("go2").mjcf))


@pytest.fixture(
    scope="module",
    params=[
        "cpu",
        pytest.param(
            "cuda:0",
            marks=[
                pytest.mark.gpu,
                pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
            ],
        ),
    ],
)
def device(request):
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "cpu":
            patch.setattr(wp.config, "optimization_level", 0)  # compiles in half the time
        yield torch.device(request.param)


@pytest.fixture(scope="module")
def shared(device):
    """One engine for the tests that leave no trace but in the state."""
    ears = Ears()
    physics = GpuPhysics(go2(), N, device, listener=ears)
    yield physics, ears
    physics.close()


@pytest.fixture
def physics(shared):
    shared[0].reset()
    shared[0].forward()
    shared[0].bad_worlds()
    return shared[0]


def random_controls(ticks, n=N, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [10 * torch.rand((n, 12), generator=generator) - 5 for _ in range(ticks)]


def push(physics, ticks, seed=0):
    for k, control in enumerate(random_controls(ticks, physics.num_worlds, seed)):
        physics.ctrl.copy_(control)
        physics.tick(last=k % 4 == 3)


def put(physics, world, data):
    for name in ("qpos", "qvel", "ctrl"):
        getattr(physics, name)[world] = torch.as_tensor(getattr(data, name)).float()
    physics._state["qacc_warmstart"][world] = torch.as_tensor(data.qacc_warmstart).float()


def test_one_tick_is_mujocos_to_1e_4_from_any_state(physics):
    rng = np.random.default_rng(0)
    singles, contacts = [], 0
    for world in range(N):
        data = mujoco.MjData(physics.model)
        mujoco.mj_resetDataKeyframe(physics.model, data, 0)
        for _ in range(40 + 20 * world):
            data.ctrl[:] = rng.uniform(-5, 5, 12)
            mujoco.mj_step(physics.model, data)
        contacts += data.ncon
        put(physics, world, data)
        singles.append(data)
    assert contacts > 20
    physics.tick(last=True)
    for world, data in enumerate(singles):
        mujoco.mj_step(physics.model, data)
        forces = data.sensordata.copy()
        np.testing.assert_allclose(physics.qpos[world].cpu(), data.qpos, atol=1e-4)
        np.testing.assert_allclose(physics.qvel[world].cpu(), data.qvel, atol=1e-3)
        np.testing.assert_allclose(physics.sensordata[world].cpu(), forces, atol=0.1, rtol=1e-3)
        mujoco.mj_forward(physics.model, data)
        np.testing.assert_allclose(physics.body_pos[world].cpu(), data.xpos, atol=1e-4)
        rotation = physics.body_rotation[world].cpu().flatten(1)
        np.testing.assert_allclose(rotation, data.xmat, atol=1e-3)


@pytest.fixture
def scene(monkeypatch, device):
    """Worlds of robots with motors on this engine."""
    monkeypatch.setattr(
        sim.scene, "make_physics", lambda model, n, device, *_: GpuPhysics(model, n, device)
    )
    worlds = Scene(EnvConfig(robot="go2", num_envs=4), device, torch.Generator(device))
    yield worlds
    worlds.close()


def advance(worlds, target):
    worlds.robot.set_joint_position_target(target.to(worlds.device))
    for k in range(4):
        worlds.tick(last=k == 3)
    worlds.update()


def test_50_steps_of_standing_and_50_of_stepping_stay_within_a_millimetre_of_mujocos(scene):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sim.scene, "make_physics", lambda model, n, *_: CpuPhysics(model, n))
        reference = Scene(EnvConfig(robot="go2", num_envs=4), "cpu", torch.Generator())
    generator = torch.Generator().manual_seed(1)
    default = reference.robot.default_joint_pos
    for noise in (0.0, 0.5):
        for _ in range(50):
            target = default + noise * (2 * torch.rand(default.shape, generator=generator) - 1)
            for worlds in (reference, scene):
                advance(worlds, target)
        for name in ("root_pos_w", "root_quat_w", "joint_pos"):
            there, here = (getattr(worlds.robot, name).cpu() for worlds in (reference, scene))
            torch.testing.assert_close(here, there, atol=1e-3, rtol=0)
        assert reference.contacts.current_contact_time.any()
        forces = [worlds.contacts.net_forces_history.cpu() for worlds in (reference, scene)]
        torch.testing.assert_close(forces[1], forces[0], atol=1.0, rtol=0.05)
    assert (reference.robot.root_lin_vel_w.abs() > 0.05).any()  # it did step


def test_a_broken_world_ends_alone_and_forgets_its_warm_start(scene):
    default = scene.robot.default_joint_pos
    healthy = scene.state_dict()
    for _ in range(3):
        advance(scene, default + 0.2)
    others = [0, 1, 3]
    undisturbed = scene.physics.qpos[others].clone()
    scene.load_state_dict(healthy)
    for step in range(3):
        if step == 2:
            scene.physics.qvel[2, 8] = torch.nan
        advance(scene, default + 0.2)
    bad, names = scene.bad_worlds()
    assert bad.tolist() == [False, False, True, False]
    assert names == {2: "qvel"}
    torch.testing.assert_close(scene.physics.qpos[others], undisturbed, atol=1e-6, rtol=0)

    ids = torch.tensor([2], device=scene.device)
    scene.reset(ids)
    scene.commit(ids)
    assert not scene.physics.state_dict()["state"]["qacc_warmstart"][2].any()
    for _ in range(2):
        advance(scene, default)
        assert not scene.bad_worlds()[0].any()
        assert scene.robot.joint_acc.isfinite().all()
        assert scene.contacts.net_forces_history.isfinite().all()


@pytest.mark.parametrize(
    ("name", "value"), [("qpos", torch.inf), ("qvel", 1e11), ("ctrl", torch.nan)]
)
def test_what_was_first_bad_has_a_name(physics, name, value):
    getattr(physics, name)[5, 3] = value
    physics.tick(last=True)
    assert physics.bad_worlds().nonzero().tolist() == [[5]]
    assert physics.bad_quantity(5) == name


def test_reset_touches_its_worlds_alone(physics):
    push(physics, 8)
    before = [physics.qpos.clone(), physics.qvel.clone(), physics.sensordata.clone()]
    ids = torch.tensor([2, 5], device=physics.device)
    physics.reset(ids)
    physics.forward(ids)
    others = [0, 1, 3, 4, 6, 7]
    for old, new in zip(before, [physics.qpos, physics.qvel, physics.sensordata], strict=True):
        assert torch.equal(old[others], new[others])
    assert physics.qpos[2].tolist() == pytest.approx(physics.model.key_qpos[0], abs=1e-7)
    assert not physics.qvel[ids].any()
    assert physics.body_pos[2, 1, 2].item() == pytest.approx(0.4)
    assert not physics.sensordata[ids].any()


def test_a_replayed_record_is_what_its_launches_compute(physics):
    push(physics, 40)
    recorded = physics.qpos.clone()
    physics.reset()
    for k, control in enumerate(random_controls(40)):
        physics.ctrl.copy_(control)
        physics._tick.launch_one_by_one()
        if k % 4 == 3:
            physics._refresh.launch_one_by_one()
    tolerance = 0 if physics.device.type == "cpu" else 1e-5  # atomics come in any order on a GPU
    torch.testing.assert_close(physics.qpos, recorded, atol=tolerance, rtol=0)


def test_without_a_record_it_runs_kernel_by_kernel_and_says_so(device, monkeypatch, physics):
    def refuse(self, launches):
        raise RuntimeError("no graphs today")

    monkeypatch.setattr(Stream, "record", refuse)
    ears = Ears()
    slow = GpuPhysics(go2(), N, device, listener=ears)
    assert "runs slower" in ears.notices[0]
    assert ears.notices[0].endswith("RuntimeError: no graphs today")
    push(physics, 12)
    push(slow, 12)
    torch.testing.assert_close(slow.qpos, physics.qpos, atol=1e-5, rtol=0)


def test_worlds_of_different_friction_slide_apart_and_may_be_given_new_friction(device):
    physics = GpuPhysics(go2(), 3, device)
    friction = physics.model_field("geom_friction")

    def slide(*coefficients):
        physics.reset()
        friction[:, 1:, 0] = torch.tensor(coefficients, device=device)[:, None]
        physics.model_changed()
        for _ in range(200):  # it sinks to the ground
            physics.tick(last=False)
        start = physics.qpos[:, 0].clone()
        physics.qvel[:, 0] = 2.0
        for _ in range(100):
            physics.tick(last=False)
        return (physics.qpos[:, 0] - start).tolist()

    first = slide(0.01, 2.0, 0.01)
    assert first[0] > 5 * first[1]
    second = slide(2.0, 2.0, 0.01)
    assert second[0] < first[0] / 5
    assert second[2] == pytest.approx(first[2], rel=0.02)
    physics.close()


def test_constants_follow_each_worlds_own_masses(device):
    physics = GpuPhysics(go2(), 3, device)
    factors = [1.0, 2.0, 0.5]
    scale = torch.tensor(factors, device=device)
    physics.model_field("body_mass")[:, 1] *= scale
    physics.model_field("body_inertia")[:, 1] *= scale[:, None]
    physics.model_field("body_ipos")[:, 1, 0] += 0.05 * scale
    physics.model_changed()
    for name in ("body_mass", *CONSTANTS):
        rows = physics.present_field(name)
        assert rows.shape[0] == 3 or not rows.numel(), name
    for world, factor in enumerate(factors):
        model = go2()
        model.body_mass[1] *= factor
        model.body_inertia[1] *= factor
        model.body_ipos[1, 0] += 0.05 * factor
        mujoco.mj_setConst(model, mujoco.MjData(model))
        for name in ("body_subtreemass", "dof_invweight0", "body_invweight0", "actuator_acc0"):
            ours = physics.present_field(name)[world].cpu().numpy()
            expected = np.asarray(getattr(model, name))
            np.testing.assert_allclose(ours, expected, rtol=2e-3, atol=1e-4, err_msg=name)
    physics.close()


def test_a_field_that_cannot_differ_is_refused(physics):
    for name in ("body_mas", "body_parentid", "nq"):
        with pytest.raises(ValueError, match=name):
            physics.model_field(name)


def test_too_little_room_is_told_and_grows_without_a_word_on_the_terminal(device, capfd):
    ears = Ears()
    physics = GpuPhysics(go2(), 2, device, Capacity(contacts=2, constraints=4), ears)
    qpos = physics.qpos
    for k in range(400):  # limp robots come to lie on the floor
        physics.tick(last=k % 4 == 3)
    assert "did not fit" in ears.notices[0]
    needed = re.search(r"needed room for (\d+) contacts and (\d+) constraints", ears.notices[0])
    assert int(needed[1]) > 2
    assert int(needed[2]) > 4
    assert ears.notices[0].endswith("it had 2 and 4; now it has 56 and 240")
    assert physics.capacity == initial_capacity(go2())
    ears.notices.clear()
    for k in range(200):
        physics.tick(last=k % 4 == 3)
    assert ears.notices == []
    assert qpos.data_ptr() == physics.qpos.data_ptr()
    weight = -physics.sensordata.view(2, -1, 3)[:, :, 2].sum(1)
    assert weight.tolist() == pytest.approx([15.206408 * 9.81] * 2, rel=0.02)
    assert capfd.readouterr() == ("", "")
    physics.close()


def test_room_that_gets_too_small_while_worlds_run_is_noticed_within_a_hundred_ticks(
    device, monkeypatch
):
    monkeypatch.setattr(GpuPhysics, "_test", lambda self: None)  # else it would notice first
    ears = Ears()
    # contacts have room enough: what does not fit are the constraints that they make
    physics = GpuPhysics(go2(), 2, device, Capacity(contacts=56, constraints=16), ears)
    told_at = None
    for k in range(600):
        physics.tick(last=k % 4 == 3)
        if ears.notices and told_at is None:
            told_at = k
            assert physics.capacity.contacts == 56
            assert physics.capacity.constraints > 16
    assert told_at is not None
    assert (told_at + 1) % 100 == 0
    weight = -physics.sensordata.view(2, -1, 3)[:, :, 2].sum(1)
    assert weight.tolist() == pytest.approx([15.206408 * 9.81] * 2, rel=0.02)
    physics.close()


def test_room_is_sized_from_the_shapes():
    # against the floor: base, head, hips and thighs; calves; head and feet
    boxes_and_cylinders, capsules, spheres = 1 + 1 + 4 + 4, 4, 1 + 4
    contacts = 4 * boxes_and_cylinders + 2 * capsules + spheres
    assert contacts == 53
    assert initial_capacity(go2()) == Capacity(56, 240)  # 4 rows a contact, 12 limits, in eights


def test_a_restored_state_continues_bit_for_bit(device):
    physics, twin = (GpuPhysics(go2(), 3, device) for _ in range(2))
    physics.model_field("body_mass")[:, 1] *= torch.tensor([0.9, 1.0, 1.2], device=device)
    physics.model_changed()
    twin.model_field("body_ipos")[:, 1] += 0.01  # of an earlier life, to be forgotten
    push(physics, 32)
    state = physics.state_dict()
    assert state["state"].keys() == set(STATE)
    twin.load_state_dict(state)
    assert torch.equal(twin.sensordata, physics.sensordata)
    assert torch.equal(twin.body_pos, physics.body_pos)
    for engine in (physics, twin):
        push(engine, 30, seed=5)
    tolerance = 0 if device.type == "cpu" else 1e-4
    torch.testing.assert_close(twin.qpos, physics.qpos, atol=tolerance, rtol=0)
    torch.testing.assert_close(twin.sensordata, physics.sensordata, atol=tolerance * 1e3, rtol=0)
    twin.close()
    physics.close()


def test_a_state_of_other_size_or_engine_is_refused(physics):
    state = physics.state_dict()
    with pytest.raises(ValueError, match=r"has qpos of \[3, 19\], this one has \[8, 19\]"):
        physics.load_state_dict(
            {**state, "state": {name: value[:3] for name, value in state["state"].items()}}
        )
    with pytest.raises(ValueError, match="the CPU's engine"):
        physics.load_state_dict({"state": torch.zeros(8, 60), "fields": {}})


def test_64_worlds_of_one_state_agree_with_each_other_and_with_mujoco(device):
    physics = GpuPhysics(go2(), 64, device)  # the constructor compares
    warm_start = physics._state["qacc_warmstart"]
    physics.reset()
    compare_with_mujoco(physics, warm_start)
    assert physics.sensordata.any(dim=1).all()
    tick = physics.tick

    def silent(last):
        tick(last)
        physics.sensordata[:] = 0

    physics.tick = silent
    with pytest.raises(PhysicsError, match="sensor readings are 0 where MuJoCo has a value"):
        compare_with_mujoco(physics, warm_start)

    def astray(last):
        tick(last)
        physics.qvel[40, 2] += 0.1

    physics.tick = astray
    with pytest.raises(PhysicsError, match="came apart: their q"):
        compare_with_mujoco(physics, warm_start)

    def all_astray(last):
        tick(last)
        physics.qpos[:, 0] += 0.01

    physics.tick = all_astray
    with pytest.raises(PhysicsError, match=r"positions differ by 0\.0[45]"):
        compare_with_mujoco(physics, warm_start)


def test_compiling_is_told_within_a_second_and_its_end_too(shared):
    _, ears = shared
    assert ears.progressed[0] == "compiling kernels (0 modules, 0 s)"
    assert ears.progressed[-1] == ""
    assert ears.notices == []


def test_the_device_chooses_the_engine(monkeypatch):
    asked = []
    monkeypatch.setattr(sim.physics.gpu, "GpuPhysics", lambda *args, **more: asked.append(args))
    assert isinstance(make_physics(go2(), 2, torch.device("cpu")), CpuPhysics)
    assert asked == []
    make_physics(go2(), 2, torch.device("cuda:1"))
    assert asked[0][1:] == (2, torch.device("cuda:1"))


def test_warp_starts_without_a_word():
    out = subprocess.run(
        [sys.executable, "-c", "import sim.warp_start"], capture_output=True, text=True, check=True
    )
    assert (out.stdout, out.stderr) == ("", "")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
class TestOnAGpu:
    """What only a GPU can show."""

    def run(self, results, stream=None):
        physics = GpuPhysics(go2(), 64, torch.device("cuda:0"))
        with torch.cuda.stream(stream):
            for k in range(100):
                # torch writes and reads between two ticks: any overtaking would show
                physics.ctrl.copy_(-5 * (physics.qpos[:, 7:] - 0.5))
                physics.tick(last=k % 4 == 3)
            results.append(physics.qpos.clone())
        torch.cuda.synchronize()

    def test_a_stream_of_ones_own_and_another_thread_change_nothing(self):
        results = []
        self.run(results)
        self.run(results, torch.cuda.Stream())
        thread = threading.Thread(target=self.run, args=(results,))
        thread.start()
        while thread.is_alive():
            torch.cuda.mem_get_info()  # as a panel that shows memory would
            thread.join(0.1)
        assert len(results) == 3
        for result in results[1:]:
            torch.testing.assert_close(result, results[0], atol=1e-4, rtol=0)

    def test_ticks_never_wait_for_the_device(self):
        ears = Ears()
        physics = GpuPhysics(go2(), 64, torch.device("cuda:0"), listener=ears)
        push(physics, 4)
        physics.bad_worlds()
        torch.cuda.set_sync_debug_mode("error")
        try:
            for k in range(40):
                physics.tick(last=k % 4 == 3)
            physics.bad_worlds()
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert ears.notices == []  # it was recorded

    @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
    def test_another_gpu_is_left_alone(self):
        code = (
            "import torch, mujoco, sys; from sim.physics.gpu import GpuPhysics;"
            "model = mujoco.MjModel.from_xml_path(sys.argv[1]);"
            "GpuPhysics(model, 64, torch.device('cuda:1')).tick(True);"
            "from sim.warp_start import wp;"
            "assert not wp.get_device('cuda:0').has_context"
        )
        subprocess.run([sys.executable, "-c", code, str(find_robot("go2").mjcf)], check=True)
