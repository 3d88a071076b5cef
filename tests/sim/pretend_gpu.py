"""A GPU to pretend with: torch computes on the CPU, but remembers which tensors would not be there.

Within `PretendGpu()`, a tensor made for `cuda:0` says that it is there, and an operation that mixes
such a tensor with one on the CPU fails as it would on a real GPU.
"""

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten

GPU = torch.device("cuda:0")
CPU = torch.device("cpu")
MOVES = {torch.Tensor.to, torch.Tensor.cpu, torch.Tensor.cuda, torch.as_tensor, torch.tensor}
HOST_ONLY = {torch.Tensor.numpy, torch.Tensor.__array__, torch.from_numpy}


class PretendGenerator(torch.Generator):
    """A source of random numbers on the pretended GPU."""

    device = GPU

    def __new__(cls, device=None):
        return super().__new__(cls)


class PretendGpu(TorchFunctionMode):
    @staticmethod
    def there(tensor):
        """Put a tensor on the pretended GPU as it is."""
        tensor.__dict__["pretended"] = True

    @staticmethod
    def _is_there(tensor):
        return "pretended" in tensor.__dict__

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func == torch.Tensor.device.__get__:
            return GPU if self._is_there(args[0]) else CPU
        name = getattr(func, "__name__", str(func))
        inputs = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
        there = [x for x in inputs if self._is_there(x)]
        if func in HOST_ONLY and there:
            raise TypeError(f"{name} of a tensor on the GPU")

        target = None  # the device that was asked for
        if "device" in kwargs:
            target = torch.device(kwargs.pop("device") or "cpu")
        if func in (torch.Tensor.to, torch.Tensor.cpu, torch.Tensor.cuda):
            target, args = self._target(func, args, kwargs, target)
        if not (func in MOVES or func is torch.Tensor.copy_):
            self._refuse_mixture(func, name, args, inputs, there)
        result = func(*args, **kwargs)
        on_gpu = target.type == "cuda" if target else bool(there)
        if isinstance(result, torch.Tensor) and func in MOVES and any(result is x for x in inputs):
            if on_gpu == self._is_there(result):
                return result
            result = result.clone()  # nothing to do on the CPU, but another tensor on a GPU
        for out in tree_flatten(result)[0]:
            if isinstance(out, torch.Tensor) and on_gpu and not any(out is x for x in inputs):
                self.there(out)
        return result

    def _target(self, func, args, kwargs, target):
        if func is torch.Tensor.cpu:
            return CPU, args
        rest = []
        for arg in args[1:]:
            if isinstance(arg, str | torch.device):
                target = torch.device(arg)
            elif isinstance(arg, torch.Tensor):
                target = GPU if self._is_there(arg) else CPU
                rest.append(arg.dtype)
            else:
                rest.append(arg)
        if "dtype" not in kwargs and (not rest or rest[0] is None):
            rest[:1] = [args[0].dtype]
        return target, (args[0], *rest)

    def _refuse_mixture(self, func, name, args, inputs, there):
        if func is torch.Tensor.__getitem__:
            if not self._is_there(args[0]) and there:
                raise RuntimeError("a tensor on the CPU is indexed by one on the GPU")
            return
        if func is torch.Tensor.__setitem__:
            own, index, value = args
            indices = [x for x in tree_flatten(index)[0] if isinstance(x, torch.Tensor)]
            if not self._is_there(own) and any(self._is_there(x) for x in indices):
                raise RuntimeError("a tensor on the CPU is indexed by one on the GPU")
            by_tensors = isinstance(value, torch.Tensor) and indices and value.dim()
            if by_tensors and self._is_there(value) != self._is_there(own):
                raise RuntimeError("an indexed tensor and its new values are on two devices")
            return
        here = [x for x in inputs if not self._is_there(x) and x.dim() > 0]
        if there and here:
            raise RuntimeError(f"{name} mixes tensors on the GPU and on the CPU")
