import pytest
import torch
import torch.nn.functional as F
from torch import nn

from trainer.linear import Linear

CASES = {
    "large": ((1024, 96), 128, True),
    "large with two leading axes": ((4, 256, 96), 128, True),
    "an odd number of rows": ((1021, 96), 128, False),
    "small": ((32, 96), 128, False),
    "one output": ((65536, 96), 1, False),
}


@pytest.mark.parametrize(("shape", "out_features", "convolves"), CASES.values(), ids=CASES.keys())
def test_both_ways_give_what_torch_gives(shape, out_features, convolves, monkeypatch):
    convolutions = []
    convolve = F.conv2d
    monkeypatch.setattr(F, "conv2d", lambda *args: convolutions.append(1) or convolve(*args))
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
    assert bool(convolutions) == (convolves and torch.backends.mkldnn.is_available())
