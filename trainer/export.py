"""A trained policy as one file for a robot's controller: ONNX, or TorchScript.

The file maps observations as they are measured to actions: the normaliser is part of it, and so
are the memory's state and the limit of the actions. It is written beside its place, read back,
compared with the policy that it was made from, and only then moved there.
"""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from trainer.inference import Policy
from trainer.recurrent import HiddenState
from trainer.torchscript import script
from trainer.whole import folder_made, written_whole

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

OBS, ACTIONS = "obs", "actions"
"""Names of input and output, RSL-RL's."""
STATES = ("h", "c")
"""Names of the memory's states; `h_in` goes in, `h_out` comes out. Zeros begin an episode."""
OPSET = 18
METADATA_FILE = "metadata.json"
"""Name of the metadata within a TorchScript file."""

TOLERANCE = 1e-5
"""Largest difference of an action, as a share of the largest action or of 1, that is let pass."""
CHECK_STEPS, CHECK_BATCHES = 10, (1, 7)
"""What is compared: so many steps in a row, in so many worlds."""

Port = tuple[str, tuple[int | str, ...]]
"""Name and shape of an input or output; a text stands for a number that is free."""

Step = Callable[[Tensor, HiddenState], tuple[Tensor, HiddenState]]
"""Observations [N, O] and the memory's state to actions [N, A] and the next state."""


class ExportError(Exception):
    """A file that does not act as the policy does; the message says by how much."""


class Written(NamedTuple):
    """A file that was written and checked."""

    path: Path
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    difference: float
    """Largest difference of an action from the policy's."""
    checked_with: str
    """The program that the file was compared in."""


class Decision(nn.Module):
    """The policy as a function of an observation and its memory's state.

    Args:
        policy: the trained policy.
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.actor = policy.actor
        self.clip_actions = policy.clip_actions

    def forward(self, obs: Tensor, *hidden: Tensor) -> tuple[Tensor, ...]:
        """Return the action [N, A] for `obs` [N, O], and the next states."""
        actions, following = self.actor.decide(obs, hidden)
        if self.clip_actions is not None:
            actions = actions.clamp(-self.clip_actions, self.clip_actions)
        return (actions, *following)


def write_onnx(policy: Policy, num_obs: int, path: Path, metadata: Mapping[str, Any]) -> Written:
    """Write the policy as one ONNX file. Needs the package `onnx`.

    Its inputs are `obs` [batch, O] and, for a policy with a memory, `h_in` (and `c_in`)
    [layers, batch, H]; its outputs `actions` [batch, A] and `h_out` (`c_out`).

    Args:
        policy: the trained policy, on the CPU.
        num_obs: O.
        path: where to.
        metadata: kept under the file's `metadata_props`: texts as they are, all else as JSON.

    Raises:
        ExportError: the file does not act as the policy does.
        OSError: it could not be written.
    """
    import onnx

    module = Decision(policy).eval()
    hidden = policy.actor.initial_hidden(1)
    states = STATES[: len(hidden)]
    inputs = [OBS, *(f"{name}_in" for name in states)]
    outputs = [ACTIONS, *(f"{name}_out" for name in states)]
    free = {name: {1 if name[:2] in ("h_", "c_") else 0: "batch"} for name in (*inputs, *outputs)}
    with folder_made(path.parent), written_whole(path) as beside:
        with warnings.catch_warnings(), torch.no_grad():
            # the newer exporter needs one package more, and writes the weights to a second file
            warnings.simplefilter("ignore")
            file = io.BytesIO()  # torch takes no path that is not UTF-8
            torch.onnx.export(
                module,
                (torch.zeros(1, num_obs), *hidden),
                file,  # type: ignore[arg-type]  # the older exporter takes it, untold
                input_names=inputs,
                output_names=outputs,
                dynamic_axes=free,
                opset_version=OPSET,
                dynamo=False,
            )
        model = onnx.load_model_from_string(file.getvalue())
        for key, value in metadata.items():
            text = value if isinstance(value, str) else json.dumps(value)
            model.metadata_props.append(onnx.StringStringEntryProto(key=key, value=text))
        onnx.checker.check_model(model)
        beside.write_bytes(model.SerializeToString())
        step, checked_with = _run_onnx(beside, model, outputs)
        difference = _compare(policy, num_obs, step)
    ports = _shapes(model.graph.input), _shapes(model.graph.output)
    return Written(path, *ports, difference, checked_with)


def write_jit(policy: Policy, num_obs: int, path: Path, metadata: Mapping[str, Any]) -> Written:
    """Write the policy as one TorchScript file, which needs no code of this program to run.

    It is called with `obs` [N, O] and returns actions [N, A]; a memory's state is its own, and
    `reset()` begins a new episode.

    Args:
        policy: the trained policy, on the CPU.
        num_obs: O.
        path: where to.
        metadata: kept within the file as `metadata.json`.

    Raises:
        ExportError: the file does not act as the policy does.
        OSError: it could not be written.
    """
    with folder_made(path.parent), written_whole(path) as beside:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # torch says that TorchScript is no longer developed
            extra = {METADATA_FILE: json.dumps(dict(metadata))}
            # by way of memory: on a full disk torch would end the process
            file = io.BytesIO()
            torch.jit.save(script(policy, num_obs), file, _extra_files=extra)
            beside.write_bytes(file.getbuffer())
            loaded = torch.jit.load(io.BytesIO(beside.read_bytes()))  # type: ignore[no-untyped-call]

        def step(obs: Tensor, hidden: HiddenState) -> tuple[Tensor, HiddenState]:
            if all(not bool(state.any()) for state in hidden):
                loaded.reset()
            return loaded(obs), policy.actor.decide(obs, hidden)[1]

        difference = _compare(policy, num_obs, step)
    num_actions = loaded(torch.zeros(1, num_obs)).shape[1]
    return Written(
        path,
        ((OBS, ("batch", num_obs)),),
        ((ACTIONS, ("batch", num_actions)),),
        difference,
        f"torch {torch.__version__}",
    )


def _run_onnx(path: Path, model: ModelProto, outputs: Sequence[str]) -> tuple[Step, str]:
    """Return what runs a file, and its name: onnxruntime where it is installed."""
    names = [entry.name for entry in model.graph.input]
    try:
        import onnxruntime
    except ModuleNotFoundError:
        import onnx.reference

        run, name = onnx.reference.ReferenceEvaluator(model).run, "onnx's reference evaluator"
    else:
        session = onnxruntime.InferenceSession(
            path.read_bytes(), providers=["CPUExecutionProvider"]
        )
        run, name = session.run, f"onnxruntime {onnxruntime.__version__}"

    def step(obs: Tensor, hidden: HiddenState) -> tuple[Tensor, HiddenState]:
        feed = dict(zip(names, (entry.numpy() for entry in (obs, *hidden)), strict=True))
        actions, *following = map(torch.as_tensor, run(list(outputs), feed))
        return actions, tuple(following)

    return step, name


@torch.no_grad()
def _compare(policy: Policy, num_obs: int, step: Step) -> float:
    """Let a file and the policy act side by side; return the largest difference of their actions.

    Raises:
        ExportError: it is too large.
    """
    generator = torch.Generator().manual_seed(0)
    module, largest = Decision(policy).eval(), 0.0
    for batch in CHECK_BATCHES:
        hidden = theirs = policy.actor.initial_hidden(batch)
        for _ in range(CHECK_STEPS):
            obs = 3 * torch.randn(batch, num_obs, generator=generator)
            wanted, *following = module(obs, *hidden)
            hidden = tuple(following)
            actions, theirs = step(obs, theirs)
            difference = float((actions - wanted).abs().max())
            largest = max(largest, difference)
            # written so that NaN fails
            if not difference <= TOLERANCE * max(1.0, float(wanted.abs().max())):
                raise ExportError(f"the file's actions differ from the policy's by {difference:g}")
    return largest


def _shapes(ports: Iterable[ValueInfoProto]) -> tuple[Port, ...]:
    return tuple(
        (
            entry.name,
            tuple(size.dim_param or size.dim_value for size in entry.type.tensor_type.shape.dim),
        )
        for entry in ports
    )
