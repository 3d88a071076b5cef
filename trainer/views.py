"""Small pictures of large tensors, for the telemetry."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainer.episodes import WINDOW, EpisodeStatistics
from trainer.rollout import Rollout
from trainer.telemetry import EpisodesView, Floats, RolloutView
from trainer.tensors import NamedTensor
from trainer.trace import ALL_COLUMNS, TensorView, TraceRequest

MAX_BINS = 128
"""Columns of the picture of a rollout; more worlds than this share columns."""


class _Transfer:
    """A tensor on its way to the host; only who reads it before it has arrived waits.

    Args:
        tensor: on any device; not changed afterwards.
    """

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self._event: torch.cuda.Event | None = None
        if tensor.is_cuda:
            here = torch.empty_like(tensor, device="cpu", pin_memory=True)
            self._tensor = here.copy_(tensor, non_blocking=True)
            self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._event.record()

    @property
    def is_here(self) -> bool:
        """Whether reading needs not wait."""
        return self._event is None or bool(self._event.query())  # type: ignore[no-untyped-call]

    def read(self) -> Floats:
        """Return it."""
        if self._event is not None:
            self._event.synchronize()
        return self._tensor.numpy()


class EpisodesPicture:
    """The last finished episodes, on the way from the device.

    Args:
        episodes: of the worlds.
    """

    @torch.no_grad()
    def __init__(self, episodes: EpisodeStatistics) -> None:
        self._packed = _Transfer(episodes.packed())

    def view(self) -> EpisodesView:
        """Read them."""
        packed = self._packed.read()
        count = int(packed[-1])
        return EpisodesView(packed[:count], packed[WINDOW : WINDOW + count])


class RolloutPicture:
    """The worlds of a rollout binned to at most `MAX_BINS` columns, on the way from the device.

    All of it travels as one tensor, and the device is waited for only by who asks for the view
    before `is_here`.

    Args:
        rollout: the rollout, `filled` rows of which belong to the present iteration.
        filled: 0 to T.
        gamma: discount of future reward, for the TD errors.
        time_outs: which of the dones are time-outs, [T, N] float32; NaN where that is not known.
        has_targets: whether advantages and returns are those of this rollout.
    """

    @torch.no_grad()
    def __init__(
        self,
        rollout: Rollout,
        filled: int,
        gamma: float,
        time_outs: Tensor,
        *,
        has_targets: bool = False,
    ) -> None:
        self._num_steps, self._num_envs, self._filled = rollout.num_steps, rollout.num_envs, filled
        self._has_targets = has_targets
        stored = (rollout.rewards, rollout.values, rollout.advantages, rollout.log_probs)
        rewards, values, advantages, log_probs = (tensor[:filled, :, 0] for tensor in stored)
        dones = rollout.dones[:filled, :, 0]
        parts = (
            rewards.masked_fill(dones, 0.0),
            dones.float(),
            time_outs[:filled],
            values,
            advantages,
            _td_errors(rollout, filled, gamma, has_targets=has_targets),
            rollout.actions[:filled].norm(dim=-1),
            log_probs,
        )
        self._sums = _Transfer(_add_up(torch.stack(parts), 2, MAX_BINS))

    @property
    def is_here(self) -> bool:
        """Whether `view` needs not wait."""
        return self._sums.is_here

    def view(self) -> RolloutView:
        """Read the picture.

        Steps that ended an episode are left out of the mean reward: a time-out's holds the
        bootstrap. A bin in which all worlds ended shows as NaN, and as done.
        """
        rewards, dones, time_outs, *others = self._sums.read()
        num_bins = rewards.shape[1]
        worlds = np.bincount(np.arange(self._num_envs) * num_bins // self._num_envs)
        ended = np.zeros((self._num_steps, num_bins), np.bool_)
        ended[: self._filled] = dones > 0
        with np.errstate(all="ignore"):
            value, advantage, td_error, action_norm, log_prob = (
                self._with_empty_rows(sums / worlds) for sums in others
            )
            return RolloutView(
                reward=self._with_empty_rows(rewards / (worlds - dones)),
                done=ended,
                num_envs=self._num_envs,
                filled=self._filled,
                value=value,
                advantage=advantage if self._has_targets else None,
                terminated=self._with_empty_rows((dones - time_outs) / worlds),
                time_out=self._with_empty_rows(time_outs / worlds),
                td_error=td_error,
                action_norm=action_norm,
                log_prob=log_prob,
            )

    def _with_empty_rows(self, means: Floats) -> Floats:
        """Add the rows that are not filled yet, as NaN: [filled, bins] -> [T, bins]."""
        whole = np.full((self._num_steps, means.shape[1]), np.nan, np.float32)
        whole[: self._filled] = means
        return whole


def _td_errors(rollout: Rollout, filled: int, gamma: float, *, has_targets: bool) -> Tensor:
    """Return r + gamma (1 - d) V(next) - V of the rows filled so far, [filled, N].

    The last row's next V is no row of the rollout: where there are targets the error is R - V
    there, without them it is not known yet.
    """
    values = rollout.values[:filled, :, 0]
    errors = rollout.rewards[:filled, :, 0] - values
    if filled == 0:
        return errors
    goes_on = ~rollout.dones[: filled - 1, :, 0]
    errors[:-1] += gamma * goes_on * values[1:]
    if has_targets:
        errors[-1] = rollout.returns[-1, :, 0] - values[-1]
    else:
        errors[-1] = torch.nan
    return errors


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


def _add_up(tensor: Tensor, axis: int, most: int) -> Tensor:
    """Add up neighbours along an axis, so that at most `most` sums are left."""
    length = tensor.shape[axis]
    if length <= most:
        return tensor
    bins = torch.arange(length, device=tensor.device) * most // length
    shape = list(tensor.shape)
    shape[axis] = most
    return tensor.new_zeros(shape).index_add_(axis, bins, tensor)


def _values(tensor: Tensor) -> Floats:
    return tensor.flatten().to(torch.float32).cpu().numpy().copy()
