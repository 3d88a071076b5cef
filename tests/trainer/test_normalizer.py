import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.normalizer import EmpiricalNormalizer


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32).unsqueeze(1)


def test_two_batches_merge_with_their_distance():
    normalizer = EmpiricalNormalizer(1)
    normalizer.update(column(0, 2))
    assert normalizer._mean.item() == 1.0
    assert normalizer._var.item() == 1.0
    normalizer.update(column(10, 14))
    assert normalizer._mean.item() == pytest.approx(6.5)
    assert normalizer._var.item() == pytest.approx(32.75)
    assert normalizer.count.item() == 4
    assert normalizer(column(12.0)).item() == pytest.approx(0.959398, abs=1e-6)


@given(
    st.lists(st.lists(st.floats(-100, 100), min_size=1, max_size=6), min_size=1, max_size=5),
)
def test_statistics_are_those_of_all_rows_together(batches):
    normalizer = EmpiricalNormalizer(1).double()
    for batch in batches:
        normalizer.update(torch.tensor(batch, dtype=torch.float64).unsqueeze(1))
    rows = torch.tensor([value for batch in batches for value in batch], dtype=torch.float64)
    torch.testing.assert_close(normalizer._mean[0, 0], rows.mean(), rtol=1e-6, atol=1e-9)
    expected_var = rows.var(correction=0)
    torch.testing.assert_close(normalizer._var[0, 0], expected_var, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(normalizer._std, normalizer._var.sqrt())


def test_a_whole_rollout_counts_each_of_its_rows():
    normalizer = EmpiricalNormalizer(4)
    normalizer.update(torch.randn(6, 5, 4))
    assert normalizer.count.item() == 30


def test_before_any_row_an_observation_is_only_scaled_by_eps():
    torch.testing.assert_close(EmpiricalNormalizer(1)(column(1.01)), column(1.0))


def test_forward_never_moves_the_statistics():
    normalizer = EmpiricalNormalizer(2)
    before = {name: tensor.clone() for name, tensor in normalizer.state_dict().items()}
    normalizer(torch.randn(50, 2))
    for name, tensor in normalizer.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_statistics_stay_ordinary_tensors_even_if_updated_in_inference_mode():
    normalizer = EmpiricalNormalizer(2)
    with torch.inference_mode():
        normalizer.update(torch.randn(8, 2))
    assert not any(buffer.is_inference() for buffer in normalizer.buffers())
    normalizer.update(torch.randn(8, 2))  # in place, outside
    obs = torch.randn(3, 2, requires_grad=True)
    normalizer(obs).sum().backward()
    assert not any(buffer.is_inference() for buffer in normalizer.buffers())
    assert obs.grad is not None
