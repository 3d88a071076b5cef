import pytest
import torch
from torch import nn

from trainer.linear import MIN_CONVOLUTION_WORK, Linear

CASES = [
    ((1024, 96), 128),  # large enough for the convolution
    ((4, 256, 96), 128),  # with two leading axes
    ((3, 96), 128),  # small
    ((1024, 96), 12),  # narrow
]


@pytest.mark.parametrize(("shape", "out_features"), CASES)
def test_both_ways_give_what_torch_gives(shape, out_features):
    torch.manual_seed(0)
    ours, reference = Linear(shape[-1], out_features), nn.Linear(shape[-1], out_features)
    reference.load_state_dict(ours.state_dict())
    inputs = [torch.randn(shape).requires_grad_() for _ in range(2)]
    inputs[1].data.copy_(inputs[0].data)
    grad = torch.randn(*shape[:-1], out_features)
    results = []
    for layer, obs in zip((ours, reference), inputs, strict=True):
        result = layer(obs)
        result.backward(grad)
        results.append((result, obs.grad, layer.weight.grad, layer.bias.grad))
    for got, expected in zip(*results, strict=True):
        assert got.shape == expected.shape
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    assert results[0][0].is_contiguous()


def test_the_cases_reach_both_ways():
    work = [torch.Size(shape).numel() * out for (shape, out) in CASES]
    assert work[0] >= MIN_CONVOLUTION_WORK > work[2]
