"""Motor laws by hand values."""

import pytest
import torch

from sim.actuators import EffortMotor, JointTargets
from sim.robots import find_robot


def torque(target, pos, vel, target_vel=0.0, effort=0.0, motor=None):
    motor = motor or find_robot("go2").actuator
    target, pos, vel, target_vel, effort = (
        torch.tensor([[float(x)]], dtype=torch.float64)
        for x in (target, pos, vel, target_vel, effort)
    )
    asked = JointTargets(target, target_vel, effort)
    on_arrays = motor.compute(
        JointTargets(target.numpy(), target_vel.numpy(), effort.numpy()), pos.numpy(), vel.numpy()
    )
    out = motor.compute(asked, pos, vel)
    assert out.item() == on_arrays.item()
    return out.item()


@pytest.mark.parametrize(
    ("error", "vel", "expected"),
    [
        (0.1, 0.0, 2.5),  # 25 x 0.1
        (0.1, 2.0, 1.5),  # 2.5 - 0.5 x 2
        (2.0, 0.0, 23.5),  # 50 held at the limit
        (-2.0, 0.0, -23.5),
        (2.0, 15.0, 11.75),  # 50 - 7.5, held at 23.5 (1 - 15 / 30)
        (2.0, 30.0, 0.0),  # no torque left at full speed
        (4.0, 45.0, -11.75),  # beyond it, the line goes on: 23.5 (1 - 45 / 30)
        (9.0, 60.0, -23.5),  # to the limit
        (9.0, 500.0, -23.5),  # and no further
        (2.0, -15.0, 23.5),  # against the motion only the limit holds
        (-2.0, 15.0, -23.5),
        (-2.0, -15.0, -11.75),
        (-9.0, -500.0, 23.5),
    ],
)
def test_dc_motor_follows_its_torque_speed_lines(error, vel, expected):
    assert torque(error + 0.7, 0.7, vel) == pytest.approx(expected, abs=1e-12)


def test_velocity_and_effort_targets_add_to_the_law():
    # 0.5 (3 - 1) + 4
    assert torque(0.0, 0.0, 1.0, target_vel=3.0, effort=4.0) == pytest.approx(5.0)


@pytest.mark.parametrize(("effort", "expected"), [(100.0, 100.0), (500.0, 400.0), (-500.0, -400.0)])
def test_effort_motor_clips_what_is_asked(effort, expected):
    assert torque(5.0, 0.0, 9.0, effort=effort, motor=EffortMotor(400.0)) == expected
