"""The command `export`: a trained policy as one file for a robot's controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from tui.commands.options import Terms, as_typed
from tui.commands.play import Run
from tui.commands.refusing import refuse, refusing_bad_input

FORMATS = ("onnx", "jit", "rsl_rl")
JOINT_NUMBERS = ("action_scale", "action_offset", "stiffness", "damping", "effort_limit")
SHOWN = ("control_dt", "physics_dt", "decimation", "quaternion_order", "run_id", "preset")
"""Metadata that the table ends with."""

Port = tuple[str, tuple[int | str, ...]]
"""Name and shape of an input or output."""


def export(
    run: Run,
    file_format: Annotated[
        str, typer.Option("--format", help="onnx, jit (TorchScript) or rsl_rl (its checkpoint).")
    ] = "onnx",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Where to; exported/ in the run if unset.",
            callback=as_typed,
        ),
    ] = None,
    terms: Terms = None,
) -> None:
    """Write a trained policy to one file: ONNX, TorchScript or RSL-RL's.

    The normaliser is part of it; the file is checked against the policy.
    """
    with refusing_bad_input():
        from presets.problems import did_you_mean

        if file_format not in FORMATS:
            allowed = ", ".join(FORMATS)
            near = did_you_mean(file_format, FORMATS)
            refuse([f"--format {file_format}: allowed: {allowed}{near}"])
        from presets.export import export as write
        from presets.export import export_rsl_rl
        from presets.trained import find_trained

        trained = find_trained(run, terms or ())
        for sentence in trained.notes:
            print(f"note: {sentence}")
        if file_format == "rsl_rl":
            print(f"{export_rsl_rl(trained, output)}  from {trained.checkpoint}")
            return
        written, metadata = write(trained, cast(Literal["onnx", "jit"], file_format), output)
    print(f"{written.path}  {written.path.stat().st_size:,} bytes, from {trained.checkpoint}")
    print(
        f"checked with {written.checked_with}: actions differ by at most {written.difference:.1e}"
    )
    print()
    print(table(written.inputs, written.outputs, metadata))


def table(inputs: Sequence[Port], outputs: Sequence[Port], metadata: Mapping[str, Any]) -> str:
    """Say what is in a file: inputs and outputs, the observation's parts, the joints, the clock."""
    lines = [
        *(_columns("in", name, _shape(shape)) for name, shape in inputs),
        *(_columns("out", name, _shape(shape)) for name, shape in outputs),
        "",
        _columns("obs", "part", "scale", "clip", "", "group"),
        *(
            _columns(_place(part), part["name"], part.get("scale"), _clip(part), "", part["group"])
            for part in metadata["observations"]
        ),
        "",
        *_joints(metadata),
        *(f"{key:<18}{metadata[key]}" for key in SHOWN if key in metadata),
    ]
    return "\n".join(lines)


def _joints(metadata: Mapping[str, Any]) -> list[str]:
    """A row an action; none for worlds of other programs, which do not tell what actions do."""
    if "joint_names" not in metadata:
        return []
    return [
        _columns("action", "joint", *(name.split("_")[-1] for name in JOINT_NUMBERS), "kind"),
        *(
            _columns(
                str(i),
                name,
                *(metadata[number][i] for number in JOINT_NUMBERS),
                metadata["action_kind"][i],
            )
            for i, name in enumerate(metadata["joint_names"])
        ),
        "",
        metadata["action_formula"],
    ]


def _columns(first: str, name: str, *values: object) -> str:
    """A row: two columns of text, then numbers and texts aligned to the right."""
    texts = (f"{v:.4g}" if isinstance(v, float) else "-" if v is None else str(v) for v in values)
    return f"{first:<9}{name:<24}" + "".join(f"{text:>11}" for text in texts).rstrip()


def _place(part: Mapping[str, Any]) -> str:
    last = part["start"] + part["size"] - 1
    return str(last) if part["size"] == 1 else f"{part['start']}-{last}"


def _clip(part: Mapping[str, Any]) -> str:
    return "-" if part.get("clip") is None else "{:g} to {:g}".format(*part["clip"])


def _shape(shape: Sequence[int | str]) -> str:
    return f"[{', '.join(map(str, shape))}]"
