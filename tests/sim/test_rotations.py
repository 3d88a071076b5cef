"""Rotations: hand values, and round trips for any rotation."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.rotations import (
    angle_between,
    heading,
    matrix_from_quat,
    quat_conjugate,
    quat_from_euler_xyz,
    quat_multiply,
    quat_normalize,
    quat_rotate,
    quat_rotate_inverse,
    wrap_to_pi,
)

HALF = math.sqrt(0.5)
numbers = st.floats(-1, 1, allow_nan=False)
vectors = st.tuples(numbers, numbers, numbers).map(lambda v: torch.tensor(v, dtype=torch.float64))
quats = (
    st.tuples(numbers, numbers, numbers, numbers)
    .filter(lambda q: sum(x * x for x in q) > 1e-3)
    .map(lambda q: quat_normalize(torch.tensor(q, dtype=torch.float64)))
)


def close(a, b):
    torch.testing.assert_close(a, b, atol=1e-12, rtol=0)


def angle(value):
    return torch.tensor(value, dtype=torch.float64)


@pytest.mark.parametrize(
    ("given_angle", "wrapped"),
    [
        (0.0, 0.0),
        (math.pi, math.pi),
        (-math.pi, math.pi),
        (4.0, 4 - 2 * math.pi),
        (-10, -10 + 4 * math.pi),
    ],
)
def test_angles_wrap_into_a_half_open_turn(given_angle, wrapped):
    close(wrap_to_pi(angle(given_angle)), angle(wrapped))


def test_a_quarter_turn_about_z_takes_x_to_y():
    quarter = torch.tensor([HALF, 0, 0, HALF], dtype=torch.float64)
    x, y = torch.eye(3, dtype=torch.float64)[:2]
    close(quat_rotate(quarter, x), y)
    close(quat_rotate_inverse(quarter, y), x)
    close(heading(quarter), angle(math.pi / 2))


def test_the_product_applies_the_right_factor_first():
    about_x = torch.tensor([HALF, HALF, 0, 0], dtype=torch.float64)
    about_z = torch.tensor([HALF, 0, 0, HALF], dtype=torch.float64)
    y = torch.tensor([0.0, 1, 0], dtype=torch.float64)
    # about x: y -> z; about z: z stays
    close(quat_rotate(quat_multiply(about_z, about_x), y), torch.tensor([0.0, 0, 1]).double())


@settings(max_examples=60, deadline=None)
@given(quats, vectors)
def test_rotating_back_gives_the_vector_again_and_keeps_its_length(quat, vector):
    turned = quat_rotate(quat, vector)
    close(quat_rotate_inverse(quat, turned), vector)
    close(turned.norm(), vector.norm())


@settings(max_examples=60, deadline=None)
@given(quats, quats, vectors)
def test_a_product_rotates_as_its_factors_in_turn(left, right, vector):
    close(
        quat_rotate(quat_multiply(left, right), vector),
        quat_rotate(left, quat_rotate(right, vector)),
    )
    identity = torch.tensor([1.0, 0, 0, 0], dtype=torch.float64)
    close(quat_multiply(left, quat_conjugate(left)), identity)


@settings(max_examples=60, deadline=None)
@given(st.floats(-3.1, 3.1), st.floats(-1.5, 1.5), st.floats(-3.1, 3.1))
def test_euler_angles_turn_about_x_then_y_then_z(roll, pitch, yaw):
    quat = quat_from_euler_xyz(angle(roll), angle(pitch), angle(yaw))
    x = torch.tensor([1.0, 0, 0], dtype=torch.float64)
    expected = [
        math.cos(yaw) * math.cos(pitch),
        math.sin(yaw) * math.cos(pitch),
        -math.sin(pitch),
    ]
    close(quat_rotate(quat, x), torch.tensor(expected, dtype=torch.float64))
    down_y = quat_rotate_inverse(quat, torch.tensor([0.0, 0, 1], dtype=torch.float64))[1]
    close(down_y, angle(math.cos(pitch) * math.sin(roll)))
    close(heading(quat), angle(yaw))


@given(quats, vectors)
def test_a_matrix_turns_as_its_quaternion_does(quat, vector):
    close(matrix_from_quat(quat) @ vector, quat_rotate(quat, vector))


@pytest.mark.parametrize("turn", [0.0, 1e-6, 1e-3, 0.5, HALF, 2.0, 3.0, math.pi])
@pytest.mark.parametrize("axis", [(1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.6, 0.0, 0.8)])
def test_the_angle_between_two_frames_is_the_turn_that_lies_between(axis, turn):
    start = quat_normalize(torch.tensor([0.3, -0.5, 0.7, 0.1]))
    half = torch.tensor([turn / 2])
    between = torch.cat((half.cos(), half.sin() * torch.tensor(axis)))
    left, right = matrix_from_quat(start), matrix_from_quat(quat_multiply(start, between))
    # in float32, near 0 and near a half turn too
    assert angle_between(left, right).item() == pytest.approx(turn, abs=1e-6)
    assert angle_between(right, left).item() == pytest.approx(turn, abs=1e-6)
