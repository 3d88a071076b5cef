"""A trained policy on disk: finding it, and rebuilding the worlds that it was trained in."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from presets.build import Device, build_env
from presets.loader import Resolved, load
from presets.paths import typed
from presets.problems import PresetError
from presets.runs import LATEST, find_run, require_readable, runs
from presets.schema import Preset
from trainer import checkpoint
from trainer.checkpoint import CheckpointError
from trainer.contents import POLICY
from trainer.recording import read_info
from trainer.rundir import RUNS, RunDir
from trainer.threads import let_torch_threads_sleep

if TYPE_CHECKING:
    from trainer.env import Env
    from trainer.inference import Policy


class Trained(NamedTuple):
    """A checkpoint of a run, and what it was trained with."""

    folder: Path
    """The run."""
    checkpoint: Path
    state: dict[str, Any]
    """What the checkpoint holds."""
    resolved: Resolved
    """The run's own settings, whatever has become of the preset since."""
    notes: tuple[str, ...]
    """Newer checkpoints and runs that cannot be read, and why, and what is of an older version; a
    sentence each."""


def find_trained(name: str, own_terms: Iterable[Path] = ()) -> Trained:
    """Find a trained policy by what a person calls it. Imports torch.

    Args:
        name: a run's folder, its name under `runs/<preset>/`, `<preset>/<name>`,
            `<preset>/latest`, `latest`, or the path of a checkpoint in a run's folder.
        own_terms: Python files with a person's own terms, if the run was trained with any.

    Raises:
        PresetError: there is no such run or checkpoint, or it cannot be read.
    """
    let_torch_threads_sleep()
    path = typed(name)
    if name and path.is_file():
        folder, found = _run_around(path), checkpoint.Newest(path, _load(path), ())
    else:
        folder, found = _newest(name)
    assert found.path is not None
    require_own_terms(folder, own_terms := tuple(own_terms))
    resolved = load(str(folder / "config.toml"), own_terms=own_terms)
    notes = (*found.unreadable, *resolved.notes)
    return Trained(folder, found.path, found.state, resolved, notes)


def require_own_terms(folder: Path, given: tuple[Path, ...]) -> None:
    """Ask for the files with a person's own terms that a run was trained with.

    Without them its task is not known, or another one, where a term of ours has the same name.

    Raises:
        PresetError: it was trained with some, and none are given; names them.
    """
    info = read_info(RunDir(folder))
    if not given and info is not None and info.own_terms:
        options = shlex.join(word for path in info.own_terms for word in ("--terms", path))
        raise PresetError([f"{folder}: trained with terms of its own; add {options}"])


def quiet(preset: Preset, num_envs: int, seed: int | None = None) -> Preset:
    """Change a preset to worlds in which nothing happens but what the policy does.

    Observations have no noise, nobody pushes, no curriculum moves; where episodes begin, and what
    was drawn at the start of training (masses, friction), is drawn as it was.

    Args:
        preset: what was trained.
        num_envs: worlds.
        seed: of all that is drawn; unset: the run's own.
    """
    env = preset.env
    still: dict[str, Any] = {
        "num_envs": num_envs,
        "events": {name: e for name, e in env.events.items() if e.mode != "interval"},
        "observations": {
            group: {name: term.model_copy(update={"noise": None}) for name, term in terms.items()}
            for group, terms in env.observations.items()
        },
        "curriculum": {},
    }
    trainer = preset.trainer
    if seed is not None:
        trainer = trainer.model_copy(update={"seed": seed})
    return preset.model_copy(update={"env": env.model_copy(update=still), "trainer": trainer})


def rebuild(
    trained: Trained, device: Device, num_envs: int, seed: int | None = None
) -> tuple[Env, Policy]:
    """Make quiet worlds and the policy that was trained in their like.

    Raises:
        PresetError: the checkpoint's policy does not fit the run's settings.
    """
    from trainer.continuing import named
    from trainer.inference import load_policy

    preset = quiet(trained.resolved.preset, num_envs, seed)
    env = build_env(preset, device, own_terms=trained.resolved.own_terms)
    try:
        with named("env"):
            _recall_tasks(env, trained.state)
        return env, load_policy(preset.trainer, env, trained.state, trained.checkpoint)
    except (CheckpointError, ValueError) as error:
        env.close()
        raise PresetError([str(error)]) from None


def _recall_tasks(env: Env, state: dict[str, Any]) -> None:
    """Take the reward weights and command ranges that training had reached."""
    saved, recall = state.get("env"), getattr(env, "recall_tasks", None)
    if saved and recall is not None:  # not a task that is one class, nor another program's
        recall(saved)


def _run_around(path: Path) -> Path:
    """The run's folder that holds a checkpoint."""
    for folder in (path.resolve().parent.parent, path.resolve().parent):
        if (folder / "config.toml").is_file():
            return folder
    raise PresetError(
        [
            f"{path}: lies in no run's folder: there is no config.toml beside its folder, which "
            "says what it was trained with"
        ]
    )


def _newest(name: str) -> tuple[Path, checkpoint.Newest]:
    """The newest readable checkpoint of a run; for `latest`, of the newest run that has one."""
    preset, slash, last = name.rpartition("/")
    if last != LATEST or (slash and not (RUNS / preset).is_dir()):
        folder = find_run(name)
        found = _newest_in(folder)
        if found.path is None:
            raise PresetError([*found.unreadable, _nothing_in(folder, found)])
        return folder, found
    require_readable()
    passed_over: list[str] = []
    for folder in runs(preset or None):
        found = _newest_in(folder)
        passed_over += found.unreadable
        if found.path is not None:
            return folder, found._replace(unreadable=tuple(passed_over))
        passed_over.append(_nothing_in(folder, found))
    where = RUNS / preset if preset else RUNS
    raise PresetError([*passed_over, f"{name}: no run in {where} has a readable checkpoint"])


def _newest_in(folder: Path) -> checkpoint.Newest:
    try:
        return checkpoint.newest_readable(folder / "checkpoints", POLICY)
    except CheckpointError as error:
        raise PresetError([str(error)]) from None


def _nothing_in(folder: Path, found: checkpoint.Newest) -> str:
    return f"{folder}: has no " + ("readable checkpoint" if found.unreadable else "checkpoint yet")


def _load(path: Path) -> dict[str, Any]:
    try:
        state = checkpoint.load(path)
        checkpoint.require(path, state, POLICY)
        return state
    except CheckpointError as error:
        raise PresetError([str(error)]) from None
