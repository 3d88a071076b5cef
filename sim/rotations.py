"""Rotations as unit quaternions wxyz, over tensors of any leading shape.

A quaternion turns the body's axes into the world's: `quat_rotate(q, v)` takes a vector from the
body frame to the world frame.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor


def wrap_to_pi(angle: Tensor) -> Tensor:
    """The same angle in (-pi, pi], in rad."""
    wrapped = torch.remainder(angle + math.pi, 2 * math.pi) - math.pi
    return torch.where(wrapped == -math.pi, math.pi, wrapped)


def quat_conjugate(quat: Tensor) -> Tensor:
    """The opposite rotation, [..., 4]."""
    return torch.cat((quat[..., :1], -quat[..., 1:]), dim=-1)


def quat_multiply(left: Tensor, right: Tensor) -> Tensor:
    """The rotation `right` followed by `left` (Hamilton product), [..., 4]."""
    w1, x1, y1, z1 = left.unbind(-1)
    w2, x2, y2, z2 = right.unbind(-1)
    return torch.stack(
        (
            w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
            w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
            w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
            w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
        ),
        dim=-1,
    )


def quat_normalize(quat: Tensor) -> Tensor:
    """Scaled to length 1, [..., 4]."""
    length: Tensor = torch.linalg.vector_norm(quat, dim=-1, keepdim=True)
    return quat / length


def quat_rotate(quat: Tensor, vector: Tensor) -> Tensor:
    """A body-frame vector [..., 3] in the world frame."""
    axis = quat[..., 1:]
    twice: Tensor = 2.0 * torch.linalg.cross(axis, vector)
    turn: Tensor = torch.linalg.cross(axis, twice)
    return vector + quat[..., :1] * twice + turn


def quat_rotate_inverse(quat: Tensor, vector: Tensor) -> Tensor:
    """A world-frame vector [..., 3] in the body frame."""
    return quat_rotate(quat_conjugate(quat), vector)


def quat_from_euler_xyz(roll: Tensor, pitch: Tensor, yaw: Tensor) -> Tensor:
    """Turn by roll about the world's x, then pitch about its y, then yaw about its z, in rad.

    Returns:
        [..., 4] for angles of shape [...].
    """
    cos_r, sin_r = torch.cos(roll / 2), torch.sin(roll / 2)
    cos_p, sin_p = torch.cos(pitch / 2), torch.sin(pitch / 2)
    cos_y, sin_y = torch.cos(yaw / 2), torch.sin(yaw / 2)
    return torch.stack(
        (
            cos_y * cos_p * cos_r + sin_y * sin_p * sin_r,
            cos_y * cos_p * sin_r - sin_y * sin_p * cos_r,
            cos_y * sin_p * cos_r + sin_y * cos_p * sin_r,
            sin_y * cos_p * cos_r - cos_y * sin_p * sin_r,
        ),
        dim=-1,
    )


def matrix_from_quat(quat: Tensor) -> Tensor:
    """As a matrix [..., 3, 3] whose columns are the body's axes in the world frame."""
    products = (quat.unsqueeze(-1) * quat.unsqueeze(-2)).flatten(-2)
    entries = products @ _matrix_of_products(quat.dtype, quat.device)
    return entries.view(*quat.shape[:-1], 3, 3)


@functools.cache
def _matrix_of_products(dtype: torch.dtype, device: torch.device) -> Tensor:
    """What turns the products of a quaternion's entries into its rotation matrix, [16, 9].

    For instance R[0, 1] = 2 (x y - w z). One product of matrices takes a tenth of the operations.
    """
    ww, wx, wy, wz, xx, xy, xz, yy, yz, zz = 0, 1, 2, 3, 5, 6, 7, 10, 11, 15
    terms = (
        {ww: 1, xx: 1, yy: -1, zz: -1},
        {xy: 2, wz: -2},
        {xz: 2, wy: 2},
        {xy: 2, wz: 2},
        {ww: 1, xx: -1, yy: 1, zz: -1},
        {yz: 2, wx: -2},
        {xz: 2, wy: -2},
        {yz: 2, wx: 2},
        {ww: 1, xx: -1, yy: -1, zz: 1},
    )
    matrix = torch.zeros(16, 9, dtype=dtype)
    for entry, factors in enumerate(terms):
        for product, factor in factors.items():
            matrix[product, entry] = factor
    return matrix.to(device)


def angle_between(left: Tensor, right: Tensor) -> Tensor:
    """Smallest angle that turns one frame into the other, [...], in rad in [0, pi].

    Args:
        left: Matrix of a frame, [..., 3, 3].
        right: Matrix of the other.
    """
    turn = left.transpose(-1, -2) @ right
    # twice the sine along the axis, and 1 + twice the cosine: exact at small angles too
    sine = torch.stack(
        (
            turn[..., 2, 1] - turn[..., 1, 2],
            turn[..., 0, 2] - turn[..., 2, 0],
            turn[..., 1, 0] - turn[..., 0, 1],
        ),
        dim=-1,
    )
    trace = turn.diagonal(dim1=-2, dim2=-1).sum(-1)
    return torch.atan2(torch.linalg.vector_norm(sine, dim=-1), trace - 1)


def heading(quat: Tensor) -> Tensor:
    """Yaw of the body's x axis seen from above, [...], in rad in (-pi, pi]."""
    w, x, y, z = quat.unbind(-1)
    return torch.atan2(2 * (x * y + w * z), 1 - 2 * (y * y + z * z))
