import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.metrics import NUM_RATIO_BINS, ratio_histogram, update_metrics, update_view
from trainer.update import MiniBatchResult


def result(kl: float, rate: float, *ratios: float) -> MiniBatchResult:
    return MiniBatchResult(
        kl=kl,
        learning_rate=rate,
        clip_fraction=10 * kl,
        surrogate=-kl,
        value_loss=2 * kl,
        entropy=3.0,
        actor_grad_norm=0.5,
        critic_grad_norm=4 * kl,
        ratio=torch.tensor(ratios),
    )


RESULTS = [result(0.0, 1e-3, 1.0, 1.0), result(0.01, 2e-3, 0.9), result(0.02, 3e-3, 0.1, 9.0, 1.25)]
STD = torch.tensor([0.5, 1.0], requires_grad=True)


def test_metrics_are_means_over_the_steps_under_the_tags_of_rsl_rl():
    assert update_metrics(RESULTS, STD) == pytest.approx(
        {
            "Loss/value": 0.02,
            "Loss/surrogate": -0.01,
            "Loss/entropy": 3.0,
            "Loss/learning_rate": 3e-3,
            "Loss/kl_mean": 0.01,
            "Loss/kl_max": 0.02,
            "Loss/clip_fraction": 0.1,
            "Loss/actor_grad_norm": 0.5,
            "Loss/critic_grad_norm": 0.04,
            "Policy/mean_std": 0.75,
            "Policy/min_std": 0.5,
        }
    )


def test_the_view_holds_every_step_in_order():
    view = update_view(RESULTS, STD)
    assert view.kl.tolist() == pytest.approx([0.0, 0.01, 0.02])
    assert view.learning_rate.tolist() == pytest.approx([1e-3, 2e-3, 3e-3])
    assert view.clip_fraction.tolist() == pytest.approx([0.0, 0.1, 0.2])
    assert view.action_std.tolist() == [0.5, 1.0]


def test_ratios_of_one_fill_the_middle_bin():
    view = update_view(RESULTS, STD)
    middle = NUM_RATIO_BINS // 2
    assert view.ratio_first[middle] == view.ratio_first.sum() == 2
    assert view.ratio_edges[middle] < 1.0 < view.ratio_edges[middle + 1]
    assert (view.ratio_edges[0], view.ratio_edges[-1]) == (0.5, 1.5)


def test_ratios_beyond_the_edges_are_in_the_outer_bins():
    last = update_view(RESULTS, STD).ratio_last
    assert last[0] == 1
    assert last[-1] == 1
    assert last.sum() == 3


@given(st.lists(st.floats(0, 1e6, width=32), min_size=1, max_size=50))
def test_every_ratio_is_counted_once(ratios):
    counts = ratio_histogram(torch.tensor(ratios, dtype=torch.float32))
    assert counts.shape == (NUM_RATIO_BINS,)
    assert counts.sum().item() == len(ratios)
