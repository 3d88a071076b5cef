"""Bringing a training of RSL-RL's over: a run's folder, made from its checkpoint and a preset."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from presets.build import Device, build_env, with_drawn_seed
from presets.columns import action_columns, joint_order, observation_columns
from presets.loader import Resolved, to_toml
from presets.problems import PresetError
from presets.schema import Preset
from presets.shapes import num_actions, observation_widths
from sim.robots import ROBOTS
from trainer import checkpoint
from trainer.checkpoint import CheckpointError
from trainer.observation_sets import resolve_set
from trainer.rundir import RunDir, RunDirError, default_path
from trainer.telemetry import EventLog
from trainer.threads import let_torch_threads_sleep

if TYPE_CHECKING:
    from trainer import rsl_rl

Terms = Sequence[tuple[str, int]]


class Imported(NamedTuple):
    """A run that was made from a checkpoint."""

    folder: Path
    completed_iterations: int
    notes: tuple[str, ...]
    """What a person should know of it, a sentence each."""


def import_checkpoint(
    path: Path,
    resolved: Resolved,
    device: Device,
    run_dir: Path | None = None,
    name: str = "",
    joints: str | None = None,
    terms: Sequence[str] = (),
) -> Imported:
    """Make a run that goes on from a checkpoint of RSL-RL 3 to 5. Imports torch.

    Nothing is written before all is known to fit.

    Args:
        path: the checkpoint.
        resolved: the preset to go on with, checked for this kind of device.
        device: where it will be trained.
        run_dir: the run's folder; unset: `runs/<preset>/<UTC time>_<name>`.
        name: the last part of that.
        joints: the checkpoint's order of the joints, if it is another one: "isaac",
            "depth-first", or all names with commas between them.
        terms: its order of the observation terms, if it is another one.

    Raises:
        PresetError: the checkpoint cannot be read or does not fit the preset, or the folder holds
            something already.
    """
    let_torch_threads_sleep()
    from trainer import rsl_rl
    from trainer.misfits import misfits
    from trainer.policy import Actor, Critic
    from trainer.rnd import RandomNetworkDistillation

    try:
        foreign = rsl_rl.read(path)
    except CheckpointError as error:
        raise PresetError([str(error)]) from None

    preset, notes = _with_normalizers_as_there(resolved, foreign)
    config, env = preset.trainer, preset.env
    widths = _widths(resolved, device)
    sets = ("actor", "critic") if config.rnd is None else ("actor", "critic", "rnd_state")
    groups = {read: resolve_set(config.obs_groups, read, widths).groups for read in sets}
    inputs = {read: [term for group in groups[read] for term in widths[group]] for read in sets}
    total = {read: sum(width for _, width in inputs[read]) for read in sets}

    actor = Actor(config.actor, total["actor"], num_actions(env))
    critic = Critic(config.critic, total["critic"])
    rnd = None
    if config.rnd is not None:
        rnd = RandomNetworkDistillation(config.rnd, total["rnd_state"], env.num_envs, env.step_dt)
    problems = [
        *misfits("actor", foreign.actor, actor.state_dict(), inputs["actor"]),
        *misfits("critic", foreign.critic, critic.state_dict(), inputs["critic"]),
    ]
    if rnd is not None and foreign.rnd:
        problems += misfits("rnd", foreign.rnd, rnd.state_dict(), inputs["rnd_state"])
    if problems:
        raise PresetError([f"{path} does not fit {preset.name}: {told}" for told in problems])

    columns = rsl_rl.Columns()
    if joints is not None or terms:
        ours = ROBOTS[env.robot].joint_names
        theirs = ours if joints is None else joint_order(env.robot, joints)
        if joints is not None and theirs == ours:
            notes.append(f"--joint-order {joints}: is our own order, no column has moved")
        columns = rsl_rl.Columns(
            action_columns(env, theirs),
            {read: observation_columns(env, groups[read], widths, theirs, terms) for read in sets},
        )
    converted = rsl_rl.convert(foreign, config, actor, critic, rnd, columns)
    notes += converted.notes
    notes.append(
        f"a checkpoint does not tell the networks' activation: {config.actor.activation} of the "
        f"actor and {config.critic.activation} of the critic are the preset's"
    )
    if config.seed is None:
        preset = with_drawn_seed(preset)
    state = {
        **converted.state,
        "preset": preset.name,
        "device": device.name,
        "elapsed": 0.0,
        "mean_reward": math.nan,
    }
    is_new = run_dir is None or not run_dir.exists()
    folder = run_dir or default_path(preset.name, name)
    _write(folder, preset, state, path, is_new=is_new)
    return Imported(folder, foreign.completed_iterations, tuple(notes))


def _with_normalizers_as_there(
    resolved: Resolved, foreign: rsl_rl.Foreign
) -> tuple[Preset, list[str]]:
    """The preset with normalised observations where the checkpoint has them, and what that changed.

    Our [cpu] tables normalise where Isaac Lab's tasks do not. What `--set` says stays.
    """
    preset, notes = resolved.preset, []
    for name, weights in (("actor", foreign.actor), ("critic", foreign.critic)):
        key = f"trainer.{name}.obs_normalization"
        network = getattr(preset.trainer, name)
        is_there = "obs_normalizer._mean" in weights
        if network.obs_normalization == is_there or resolved.origins.get(key) == "--set":
            continue
        network = network.model_copy(update={"obs_normalization": is_there})
        trainer = preset.trainer.model_copy(update={name: network})
        preset = preset.model_copy(update={"trainer": trainer})
        value = str(is_there).lower()
        origin = resolved.origins[key]
        notes.append(f"{key} = {value}, as in the checkpoint; {origin} says otherwise")
    return preset, notes


def _widths(resolved: Resolved, device: Device) -> dict[str, Terms]:
    """Terms of each observation group with their widths."""
    preset = resolved.preset
    if not resolved.own_terms:
        told = observation_widths(preset.env)
        if all(width is not None for terms in told.values() for width in terms.values()):
            return {
                group: [(term, width or 0) for term, width in terms.items()]
                for group, terms in told.items()
            }
    env = preset.env.model_copy(update={"num_envs": 1})  # only building tells
    trainer = preset.trainer.model_copy(update={"seed": 0})
    small = preset.model_copy(update={"env": env, "trainer": trainer})
    built = build_env(small, device, own_terms=resolved.own_terms)
    try:
        return dict(built.observation_terms)
    finally:
        built.close()


def _write(
    folder: Path, preset: Preset, state: dict[str, object], source: Path, *, is_new: bool
) -> None:
    """Write the run, or nothing."""
    done = int(str(state["completed_iterations"]))
    try:
        run_dir = RunDir.create(folder, to_toml(preset))
    except RunDirError as error:
        raise PresetError([str(error)]) from None
    try:
        checkpoint.save(checkpoint.path_for(run_dir.checkpoints, done), state)
    except OSError as error:
        run_dir.release()
        for entry in folder.iterdir():  # it was new or empty
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        if is_new:
            folder.rmdir()
        reason = error.strerror or error
        raise PresetError([f"--run-dir {folder}: cannot be written: {reason}"]) from None
    run_dir.append_event(
        EventLog().add("import", f"{done} iterations of RSL-RL from {source.name}")
    )
    run_dir.release()
