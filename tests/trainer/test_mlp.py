import pytest
import torch
import torch.nn.functional as F
from torch import nn

from trainer.mlp import _ACTIVATIONS, MLP

# shape of the input, whether its rows are taken as images
CASES = {
    "many rows": ((1024, 96), True),
    "many rows with two leading axes": ((4, 256, 96), True),
    "an odd number of rows": ((1021, 96), False),
    "few rows": ((32, 96), False),
}


@pytest.mark.parametrize("activation", _ACTIVATIONS)
@pytest.mark.parametrize(("shape", "as_images"), CASES.values(), ids=CASES.keys())
def test_both_ways_give_what_plain_layers_give(shape, as_images, activation, monkeypatch):
    convolutions = []
    convolve = F.conv2d
    monkeypatch.setattr(F, "conv2d", lambda *args: convolutions.append(1) or convolve(*args))
    torch.manual_seed(0)
    ours = MLP(shape[-1], (64, 48), 3, activation)
    reference = nn.Sequential(*ours)
    inputs = torch.randn(shape), torch.randn(*shape[:-1], 3)

    results = []
    for network in (ours, reference):
        network.zero_grad()
        obs = inputs[0].clone().requires_grad_()
        result = network(obs)
        result.backward(inputs[1])
        grads = [parameter.grad.clone() for parameter in ours.parameters()]
        results.append((result, obs.grad, *grads))
    for got, expected in zip(*results, strict=True):
        assert got.shape == expected.shape
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    assert results[0][0].is_contiguous()
    assert len(convolutions) == (2 if as_images and torch.backends.mkldnn.is_available() else 0)


def test_the_input_is_never_overwritten():
    obs = torch.randn(1024, 96)
    before = obs.clone()
    MLP(96, (64,), 3, "relu")(obs)
    assert torch.equal(obs, before)


def test_without_hidden_layers_it_is_one_linear_layer():
    network = MLP(5, (), 2, "elu")
    assert list(network.state_dict()) == ["0.weight", "0.bias"]
    assert network(torch.randn(4096, 5)).shape == (4096, 2)
