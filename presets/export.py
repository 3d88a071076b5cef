"""A run's policy as a file for others, with what they must know of the worlds it was trained in."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from presets.build import Device
from presets.extras import require
from presets.problems import PresetError
from presets.trained import Trained, rebuild
from trainer import checkpoint
from trainer.checkpoint import CheckpointError
from trainer.contents import LEARNER
from trainer.whole import folder_made

if TYPE_CHECKING:
    from sim.step import SteppedEnv
    from trainer.env import Env
    from trainer.export import Written
    from trainer.inference import Policy

SCHEMA_VERSION = 1
"""Grows when the metadata change their meaning."""

Format = Literal["onnx", "jit", "rsl_rl"]
SUFFIXES = {"onnx": ".onnx", "jit": ".pt", "rsl_rl": ".pt"}


def export(
    trained: Trained, file_format: Format, output: Path | None = None
) -> tuple[Written, dict[str, Any]]:
    """Write a run's policy to a file, and check the file against the policy.

    Args:
        trained: the policy.
        file_format: "onnx" or "jit".
        output: where to; unset: `exported/<preset>_<iterations>` in the run's folder.

    Returns:
        What was written, and the metadata in it.

    Raises:
        PresetError: a package is missing, the file cannot be written, or it does not act as the
            policy does.
    """
    if file_format == "onnx":
        require("onnx", "export", "--format onnx")
    from trainer.export import ExportError, write_jit, write_onnx

    path = output or default_output(trained, file_format)
    _refuse_what_is_no_file(path)
    env, policy = rebuild(trained, Device("cpu"), num_envs=1)
    try:
        metadata = describe(trained, env, policy)
        num_obs = sum(part["size"] for part in metadata["observations"])
        write = write_onnx if file_format == "onnx" else write_jit
        return write(policy, num_obs, path, metadata), metadata
    except OSError as error:
        raise PresetError([f"{path}: cannot be written: {error.strerror or error}"]) from None
    except ExportError as error:
        raise PresetError([f"{path}: not written: {error}"]) from None
    finally:
        env.close()


def export_rsl_rl(trained: Trained, output: Path | None = None) -> Path:
    """Write a run's checkpoint as RSL-RL reads it; returns where.

    Raises:
        PresetError: the file cannot be written, or the checkpoint lacks a part of it.
    """
    from trainer import rsl_rl

    path = output or default_output(trained, "rsl_rl")
    _refuse_what_is_no_file(path)
    try:
        checkpoint.require(trained.checkpoint, trained.state, LEARNER)
        with folder_made(path.parent):
            rsl_rl.write(path, trained.state)
    except OSError as error:
        raise PresetError([f"{path}: cannot be written: {error.strerror or error}"]) from None
    except CheckpointError as error:
        raise PresetError([str(error)]) from None
    return path


def describe(trained: Trained, env: Env, policy: Policy) -> dict[str, Any]:
    """Collect what a robot's controller must know, as numbers, texts, lists and dicts."""
    groups = policy.observation_set.groups
    return {
        "schema_version": SCHEMA_VERSION,
        "made_by": f"ppo-tui {version('ppo-tui')}",
        "preset": trained.resolved.preset.name,
        "run_id": trained.folder.resolve().name,
        "checkpoint": trained.checkpoint.name,
        "iterations": trained.state.get("completed_iterations"),
        "recurrent": "" if policy.actor.rnn is None else type(policy.actor.rnn.rnn).__name__,
        "normalizer": "inside the file: give it observations as they are measured",
        "clip_actions": policy.clip_actions,
        **_worlds(trained, env, groups),
    }


def _worlds(trained: Trained, env: Env, groups: Sequence[str]) -> dict[str, Any]:
    """Describe the worlds; those of other programs as far as they tell."""
    if trained.resolved.preset.env.adapter is None:
        from sim.controller import describe_controller

        return describe_controller(cast("SteppedEnv", env), groups, trained.resolved.own_terms)
    parts, start = [], 0
    for group in groups:
        for name, size in env.observation_terms[group]:
            parts.append({"name": name, "group": group, "start": start, "size": size})
            start += size
    return {
        "adapter": trained.resolved.preset.env.adapter,
        "action_names": list(env.action_names),
        "observations": parts,
        "control_dt": env.step_dt,
    }


def default_output(trained: Trained, file_format: Format) -> Path:
    """Where a file goes that was given no place: into the run's folder."""
    done = trained.state.get("completed_iterations", "")
    stem = f"{trained.resolved.preset.name}_{done}"
    if file_format == "rsl_rl":
        stem += "_rsl_rl"
    return trained.folder / "exported" / f"{stem}{SUFFIXES[file_format]}"


def _refuse_what_is_no_file(path: Path) -> None:
    if path.is_dir():
        raise PresetError([f"--output {path}: is a folder; name a file"])
    if path.exists() and not path.is_file():  # a device such as /dev/null would be replaced
        raise PresetError([f"--output {path}: is no regular file; name another"])
