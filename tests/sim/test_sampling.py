"""Random draws stay in their limits, and timers ring when their time has passed."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sim.sampling import log_uniform, uniform, uniform_axes, uniform_steps

limits = st.tuples(st.floats(-100, 100), st.floats(0, 100)).map(lambda p: (p[0], p[0] + p[1]))


def seeded(seed):
    return torch.Generator().manual_seed(seed)


@given(limits, st.integers(0, 1000))
def test_uniform_stays_within_its_limits(limits, seed):
    draw = uniform(seeded(seed), limits, 50, 2)
    assert draw.shape == (50, 2)
    assert draw.min() >= limits[0] - 1e-4
    assert draw.max() <= limits[1] + 1e-4


def test_log_uniform_is_as_often_below_as_above_one():
    draw = log_uniform(seeded(0), (0.8, 1.25), 4000)
    assert draw.min() >= 0.8
    assert draw.max() <= 1.25 + 1e-6
    assert (draw < 1).float().mean().item() == pytest.approx(0.5, abs=0.03)


def test_axes_that_are_left_out_stay_at_zero():
    draw = uniform_axes(seeded(0), {"y": (1.0, 2.0), "yaw": (-1.0, -1.0)}, 100)
    assert draw.shape == (100, 6)
    assert (draw[:, [0, 2, 3, 4]] == 0).all()
    assert draw[:, 1].min() >= 1.0
    assert (draw[:, 5] == -1.0).all()


@given(st.integers(1, 5000), st.sampled_from([0.02, 1 / 30, 1 / 60, 0.005]))
def test_a_whole_number_of_steps_is_met_exactly(steps, step_dt):
    seconds = steps * step_dt
    draw = uniform_steps(seeded(0), (seconds, seconds), step_dt, 8)
    assert draw.tolist() == [steps] * 8
    assert draw.dtype == torch.int64


@given(st.floats(0.001, 20.0))
def test_a_timer_rings_on_the_first_step_at_which_its_time_has_passed(seconds):
    (steps,) = uniform_steps(seeded(0), (seconds, seconds), 0.02, 1).tolist()
    exact = seconds / 0.02
    assert steps in {max(1, math.ceil(exact - 2e-3)), math.ceil(exact)}
