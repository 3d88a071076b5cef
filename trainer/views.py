"""Small pictures of large tensors, for the telemetry."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainer.rollout import Rollout
from trainer.telemetry import Floats, RolloutView
from trainer.tensors import NamedTensor
from trainer.trace import ALL_COLUMNS, TensorView, TraceRequest

MAX_BINS = 128
"""Columns of the picture of a rollout; more worlds than this share columns."""


def rollout_view(rollout: Rollout, filled: int) -> RolloutView:
    """Bin the worlds of a rollout to at most `MAX_BINS` columns.

    Steps that ended an episode are left out of the mean reward: a time-out's holds the bootstrap.
    A bin in which all worlds ended shows as NaN, and as done.

    Args:
        rollout: the rollout, `filled` rows of which belong to the present iteration.
        filled: 0 to T; of a full rollout the advantages are taken as they stand.
    """
    num_bins = min(rollout.num_envs, MAX_BINS)
    edges = np.arange(num_bins) * rollout.num_envs // num_bins
    size = (rollout.num_steps, num_bins)
    if not filled:
        empty = np.full(size, np.nan, np.float32)
        return RolloutView(empty, np.zeros(size, np.bool_), rollout.num_envs, 0, empty)

    def mean(tensor: Tensor, counted: NDArray[np.bool_]) -> NDArray[np.float32]:
        numbers = np.where(counted, tensor[:filled, :, 0].cpu().numpy(), 0)
        means = np.full(size, np.nan, np.float32)
        with np.errstate(all="ignore"):
            counts = np.add.reduceat(counted, edges, axis=1, dtype=np.int64)
            means[:filled] = np.add.reduceat(numbers, edges, axis=1) / counts
        return means

    ended = rollout.dones[:filled, :, 0].cpu().numpy()
    done = np.zeros(size, np.bool_)
    done[:filled] = np.logical_or.reduceat(ended, edges, axis=1)
    everywhere = np.ones_like(ended)
    is_full = filled == rollout.num_steps
    return RolloutView(
        reward=mean(rollout.rewards, ~ended),
        done=done,
        num_envs=rollout.num_envs,
        filled=filled,
        value=mean(rollout.values, everywhere),
        advantage=mean(rollout.advantages, everywhere) if is_full else None,
    )


PICTURE_ROWS = 96
PICTURE_COLUMNS = 192
"""Most bins of a tensor opened large."""
LONGEST_LINE = 512
"""Entries above which a line through a tensor is binned too."""


class _Plane(NamedTuple):
    """What of a tensor lies in the picture, and where the cursor is."""

    matrix: Tensor
    """[R, C]"""
    rows: str
    columns: str
    row: int
    column: int
    depth: Tensor
    """Entries along the axis that is not in the picture, at the cursor; empty without one."""
    names: tuple[str, ...] = ()
    """Names of the rows."""


@torch.no_grad()
def tensor_view(
    entry: NamedTensor, request: TraceRequest, dones: Tensor, place: int
) -> TensorView | None:
    """Describe one tensor large: a binned picture, the entry under the cursor, lines through it.

    Args:
        entry: the tensor.
        request: step, world, row and column of the cursor.
        dones: of the rollout, [T, N, 1]; marks the ends of episodes in a picture over [T, N].
        place: where the chosen transition stands in the order in which mini-batches read.

    Returns:
        None for a tensor without entries.
    """
    if not entry.tensor.numel():
        return None
    plane = _plane(entry, request, place)
    num_rows, num_columns = plane.matrix.shape
    row = min(max(plane.row, 0), num_rows - 1)
    column = min(max(plane.column, 0), num_columns - 1)
    picture, bad = _binned(plane.matrix, PICTURE_ROWS, PICTURE_COLUMNS)
    ended = np.zeros(picture.shape, np.bool_)
    if entry.symbols.startswith("[T,N"):
        ended = _binned(dones[:num_rows, :, 0].float(), *picture.shape)[0] > 0
    along = _values(plane.matrix[:, column])
    if num_rows > LONGEST_LINE:
        along = _binned(plane.matrix[:, column : column + 1], LONGEST_LINE, 1)[0][:, 0]
    depth = _values(plane.depth)
    return TensorView(
        name=entry.name,
        rows=plane.rows,
        columns=plane.columns,
        num_rows=num_rows,
        num_columns=num_columns,
        row=row,
        column=column,
        picture=picture,
        bad=bad,
        dones=ended,
        value=float(plane.matrix[row, column]),
        row_names=plane.names,
        depth_names=entry.columns[: len(depth)],
        depth=depth,
        depth_column=_column(request, len(depth)),
        along=along,
    )


def _plane(entry: NamedTensor, request: TraceRequest, place: int) -> _Plane:
    """Lay a tensor flat: steps or parts of a row downward, worlds or samples across."""
    tensor, symbols = entry.tensor.detach(), entry.symbols.strip("[]").split(",")
    nothing = tensor.new_empty(0)
    if tensor.ndim == 3:
        t, n = min(request.step, tensor.shape[0] - 1), request.world % tensor.shape[1]
        depth = tensor[t, n] if tensor.shape[2] > 1 else nothing
        return _Plane(_flat(tensor, request), symbols[0].lower(), symbols[1].lower(), t, n, depth)
    if tensor.ndim < 2:
        across = {"N": request.world, "B": place, "M": place % max(tensor.numel(), 1)}
        column = across.get(symbols[0], request.row)
        return _Plane(tensor.reshape(1, -1), "", symbols[0].lower(), 0, column, nothing)
    if symbols[0] in ("N", "B", "M"):
        across = {"N": request.world, "B": place, "M": place % tensor.shape[0]}
        column = across[symbols[0]]
        return _Plane(
            tensor.T, "column", symbols[0].lower(), request.row, column, nothing, entry.columns
        )
    return _Plane(tensor, symbols[0], symbols[1], request.row, max(request.column, 0), nothing)


def _flat(tensor: Tensor, request: TraceRequest) -> Tensor:
    """One column of [T, N, K], or the root mean square over all of them, [T, N]."""
    column = _column(request, tensor.shape[2])
    if tensor.shape[2] == 1:
        return tensor[..., 0]
    if column == ALL_COLUMNS:
        return tensor.float().square().mean(-1).sqrt()
    return tensor[..., column]


def _column(request: TraceRequest, width: int) -> int:
    return request.column if 0 <= request.column < width else ALL_COLUMNS


def _binned(matrix: Tensor, most_rows: int, most_columns: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Average the finite entries of a matrix into bins, on its own device.

    Returns:
        Means [R, C], NaN where a bin has no finite entry; and which bins hold NaN or infinity.
    """
    values = matrix.float()
    finite = values.isfinite()
    sums = torch.where(finite, values, 0.0)
    counts = finite.float()
    bad = (~finite).float()
    parts = [_add_up(_add_up(part, 1, most_columns), 0, most_rows) for part in (sums, counts, bad)]
    total, count, wrong = (part.cpu().numpy() for part in parts)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(count > 0, total / count, np.nan).astype(np.float32)
    return means, wrong > 0


def _add_up(matrix: Tensor, axis: int, most: int) -> Tensor:
    """Add up neighbours along an axis, so that at most `most` sums are left."""
    length = matrix.shape[axis]
    if length <= most:
        return matrix
    bins = torch.arange(length, device=matrix.device) * most // length
    shape = list(matrix.shape)
    shape[axis] = most
    return matrix.new_zeros(shape).index_add_(axis, bins, matrix)


def _values(tensor: Tensor) -> Floats:
    return tensor.flatten().to(torch.float32).cpu().numpy().copy()
