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
    return _sums(left, right, _HAMILTON_PRODUCT)


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
    half = torch.stack((roll, pitch, yaw), dim=-1) / 2
    turns = torch.stack((torch.cos(half), torch.sin(half)), dim=-1)
    about_x, about_y, about_z = turns.unbind(-2)
    about_zy = (about_z.unsqueeze(-1) * about_y.unsqueeze(-2)).flatten(-2)
    return _sums(about_zy, about_x, _EULER_XYZ)


def matrix_from_quat(quat: Tensor) -> Tensor:
    """As a matrix [..., 3, 3] whose columns are the body's axes in the world frame."""
    entries = _sums(quat + quat, quat, _ROTATION_MATRIX)
    entries[..., ::4].sub_(1.0)
    return entries.view(*quat.shape[:-1], 3, 3)


# Sums of products of two vectors' entries. For each entry of the result: (entry of the left one,
# entry of the right one, sign) of every product in it. Written out, each sum would take an
# operation a product; a product of matrices would wake other threads for a microsecond of work.

Sums = tuple[tuple[tuple[int, int, int], ...], ...]

_HAMILTON_PRODUCT: Sums = (
    ((0, 0, 1), (1, 1, -1), (2, 2, -1), (3, 3, -1)),
    ((0, 1, 1), (1, 0, 1), (2, 3, 1), (3, 2, -1)),
    ((0, 2, 1), (1, 3, -1), (2, 0, 1), (3, 1, 1)),
    ((0, 3, 1), (1, 2, 1), (2, 1, -1), (3, 0, 1)),
)

_EULER_XYZ: Sums = (
    # left: cos z cos y, cos z sin y, sin z cos y, sin z sin y; right: cos x, sin x
    ((0, 0, 1), (3, 1, 1)),
    ((0, 1, 1), (3, 0, -1)),
    ((1, 0, 1), (2, 1, 1)),
    ((2, 0, 1), (1, 1, -1)),
)

_ROTATION_MATRIX: Sums = (
    # left: twice the quaternion; 1 is still to be taken off the diagonal
    ((0, 0, 1), (1, 1, 1)),
    ((1, 2, 1), (0, 3, -1)),
    ((1, 3, 1), (0, 2, 1)),
    ((1, 2, 1), (0, 3, 1)),
    ((0, 0, 1), (2, 2, 1)),
    ((2, 3, 1), (0, 1, -1)),
    ((1, 3, 1), (0, 2, -1)),
    ((2, 3, 1), (0, 1, 1)),
    ((0, 0, 1), (3, 3, 1)),
)


def _sums(left: Tensor, right: Tensor, sums: Sums) -> Tensor:
    """Add up products of entries of `left` and `right`, [..., sums]."""
    products = (left.unsqueeze(-1) * right.unsqueeze(-2)).flatten(-2)
    first, *others = _places(sums, right.shape[-1], products.dtype, products.device)
    total = products.index_select(-1, first[0])
    for place, sign in others:
        total.addcmul_(products.index_select(-1, place), sign)
    return total


@functools.cache
def _places(
    sums: Sums, width: int, dtype: torch.dtype, device: torch.device
) -> list[tuple[Tensor, Tensor]]:
    """Where the first products of all sums lie among the flattened ones, the second ones, ...

    Returns:
        For each of these its places and signs, [sums] each; the first products have sign 1.
    """
    return [
        (
            torch.tensor([left * width + right for left, right, _ in entries], device=device),
            torch.tensor([sign for _, _, sign in entries], dtype=dtype, device=device),
        )
        for entries in zip(*sums, strict=True)
    ]


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
