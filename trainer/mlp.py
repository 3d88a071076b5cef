"""The multi-layer perceptron of both networks, with a faster way for many rows on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trainer.config import Activation

NUM_IMAGES = 16
"""Parts into which rows are cut; with fewer than 16, PyTorch may choose another library."""
MIN_IMAGE_WORK = 2**22
"""Multiply-adds of the largest layer from which the way over images wins."""

# Where the derivative can be computed from the result, the input is overwritten: less memory.
_ACTIVATIONS: Mapping[Activation, Callable[[], nn.Module]] = {
    "elu": lambda: nn.ELU(inplace=True),
    "selu": lambda: nn.SELU(inplace=True),
    "relu": lambda: nn.ReLU(inplace=True),
    "celu": lambda: nn.CELU(inplace=True),
    "leaky_relu": lambda: nn.LeakyReLU(inplace=True),
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "softplus": nn.Softplus,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "mish": nn.Mish,
}


class MLP(nn.Sequential):
    """Linear layers with activations between them, initialised as PyTorch does.

    On the CPU a linear layer goes to MKL, which leaves the AVX-512 units of AMD's processors idle,
    while a convolution goes to oneDNN, which uses them. So many rows are taken as a few images of
    one column, with their channels last: a hidden layer is then a 1 x 1 convolution of the same
    numbers, and none of them has to be moved. On an EPYC core the layer of 3072 rows, 128 by 128,
    forward and backward, takes half the time.

    Args:
        num_inputs: width of the input.
        hidden_dims: widths of the hidden layers.
        num_outputs: width of the output.
        activation: function between the layers.
    """

    def __init__(
        self, num_inputs: int, hidden_dims: Sequence[int], num_outputs: int, activation: Activation
    ) -> None:
        widths = (num_inputs, *hidden_dims)
        layers: list[nn.Module] = []
        for width_in, width_out in pairwise(widths):
            layers += [nn.Linear(width_in, width_out), _ACTIVATIONS[activation]()]
        super().__init__(*layers, nn.Linear(widths[-1], num_outputs))
        self._largest_layer = max((a * b for a, b in pairwise(widths)), default=0)

    def forward(self, input: Tensor) -> Tensor:
        """Map `input` [..., in] to [..., out]."""
        if not self._takes_images(input):
            return cast(Tensor, super().forward(input))  # type: ignore[no-untyped-call]
        images = input.reshape(NUM_IMAGES, -1, 1, input.shape[-1]).permute(0, 3, 1, 2)
        *hidden, last = self
        for layer in hidden:
            if isinstance(layer, nn.Linear):
                images = F.conv2d(images, layer.weight[:, :, None, None], layer.bias)
            else:
                images = layer(images)
        rows = images.permute(0, 2, 3, 1).reshape(*input.shape[:-1], images.shape[1])
        return cast(Tensor, last(rows))

    def _takes_images(self, input: Tensor) -> bool:
        rows = input.shape[:-1].numel()
        return (
            input.device.type == "cpu"
            and rows % NUM_IMAGES == 0
            and rows * self._largest_layer >= MIN_IMAGE_WORK
            and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        )
