"""All torch code of the worlds keeps to its device, shown without a GPU."""

import pytest
import torch

import sim.env
import sim.scene
from sim.physics.cpu import CpuPhysics
from tests.sim.builders import preset_config
from tests.sim.pretend_gpu import GPU, PretendGenerator, PretendGpu


class PretendPhysics(CpuPhysics):
    """The CPU's engine with its tensors on the pretended GPU."""

    def __init__(self, model, num_worlds, *_):
        super().__init__(model, num_worlds, 1)
        self.device = GPU
        for name in ("qpos", "qvel", "ctrl", "sensordata", "_body_pos", "_body_rotation"):
            setattr(self, name, there(getattr(self, name)))

    def forward(self, ids=None):
        super().forward(None if ids is None else ids.cpu())

    def reset(self, ids=None):
        super().reset(None if ids is None else ids.cpu())

    def model_field(self, name):
        return there(super().model_field(name))

    def present_field(self, name):
        return there(super().present_field(name))

    def bad_worlds(self):
        return there(super().bad_worlds())


def there(tensor):
    PretendGpu.there(tensor)
    return tensor


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(sim.scene, "make_physics", PretendPhysics)
    monkeypatch.setattr(torch, "Generator", PretendGenerator)
    with PretendGpu():
        yield


def test_mixing_devices_is_noticed(gpu):
    here, there = torch.zeros(3), torch.zeros(3, device="cuda:0")
    assert there.device == GPU
    assert here.device.type == "cpu"
    assert (there + 1).device == GPU
    assert there[torch.tensor([0])].device == GPU
    assert torch.zeros_like(there).device == there.new_zeros(2).device == GPU
    assert here.to(GPU).device == GPU
    assert there.cpu().device.type == "cpu"
    there.copy_(here)
    for mistake in (
        lambda: here + there,
        lambda: torch.cat((there, here)),
        lambda: here[there.long()],
        lambda: there.__setitem__(torch.tensor([0, 1, 2]), here),
        lambda: there.numpy(),
        lambda: torch.add(there, here, out=there),
    ):
        with pytest.raises((RuntimeError, TypeError)):
            mistake()


def walk(config):
    """Step worlds on the pretended GPU beyond their time limit; all that they give is there."""
    env = sim.env.make_env(config, "cuda:0", 1)
    for _ in range(15):
        for group in env.observe().values():
            assert group.device == GPU
        feedback = env.step(torch.zeros(6, env.num_actions, device="cuda:0"))
        for value in feedback[:3]:
            assert value.device == GPU
    env.load_state_dict(env.state_dict())


@pytest.mark.parametrize("preset", ["go2_flat", "cartpole", "cartpole_direct", "franka_reach"])
def test_every_operation_of_a_presets_worlds_keeps_to_their_device(gpu, preset):
    walk(preset_config(preset, num_envs=6, episode_length_s=0.2))


def without_scan(groups):
    """Observation groups without the scan, whose rays are Warp's."""
    return {
        group: {name: term for name, term in terms.items() if name != "height_scan"}
        for group, terms in groups.items()
    }


def test_rough_ground_and_what_only_a_critic_sees_keep_to_their_device(gpu):
    config = preset_config("go2_rough_asymmetric").model_dump()
    walk(
        preset_config(
            "go2_rough_asymmetric",
            num_envs=6,
            episode_length_s=0.2,
            terrain={**config["terrain"], "border_width": 1.0, "num_cols": 6},
            observations=without_scan(config["observations"]),
        )
    )


def test_parts_of_the_robot_that_lie_apart_keep_to_the_device(gpu):
    feet, thighs = ["FL_foot", "RR_foot"], ["FL_thigh", "RL_thigh"]
    startup = {"mode": "startup", "bodies": thighs}
    walk(
        preset_config(
            num_envs=6,
            episode_length_s=0.2,
            observations={
                "policy": {
                    "joint_pos_rel": {"joints": ".*_thigh_joint"},
                    "feet_contact": {"bodies": feet},
                    "body_mass_rel": {"bodies": thighs},
                }
            },
            rewards={
                "feet_air_time": {"weight": 1.0, "bodies": feet, "threshold": 0.5},
                "dof_pos_limits": {"weight": -1.0, "joints": ["FL_.*", "RR_.*"]},
            },
            terminations={
                "time_out": {"time_out": True},
                "contact": {"term": "illegal_contact", "bodies": ["FL_thigh", "RL_thigh"]},
            },
            events={
                "friction": {
                    "term": "randomize_rigid_body_material",
                    "friction_range": (0.5, 1.0),
                    **startup,
                },
                "mass": {
                    "term": "randomize_rigid_body_mass",
                    "scale_range": (0.9, 1.1),
                    **startup,
                },
                "more_mass": {
                    "term": "add_rigid_body_mass",
                    "mass_range": (0.0, 0.1),
                    **startup,
                },
                "com": {
                    "term": "randomize_rigid_body_com",
                    "com_range": {"x": (-0.01, 0.01)},
                    **startup,
                },
                "joints": {
                    "term": "reset_joints_by_offset",
                    "mode": "reset",
                    "position_range": (-0.1, 0.1),
                    "joints": ["FL_.*", "RR_.*"],
                },
            },
        )
    )
