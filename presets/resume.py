"""Going on with a run: finding it, and holding it to the settings it was trained with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from presets.adapters import require_adapter, run_name
from presets.build import Device, build_env, notes_on, require_tracker
from presets.loader import Resolved, differences, filed_under, load, to_toml
from presets.memory import require_memory
from presets.problems import PresetError, locate
from presets.ranks import Ranks, joining, notes_on_state
from presets.runs import LATEST, find_run, require_readable, runs
from presets.toml import format_key, format_value
from presets.trained import require_own_terms
from trainer import checkpoint
from trainer.checkpoint import CheckpointError
from trainer.contents import LEARNER, worlds_lacking
from trainer.rundir import RUNS, RunDir, RunDirError, writer
from trainer.session import Session
from trainer.threads import let_torch_threads_sleep

CHANGEABLE = (
    "trainer.num_iterations",
    "trainer.save_interval",
    "trainer.keep_checkpoints",
    "trainer.logger",
    "trainer.wandb_project",
)
"""Keys that may differ from the run's own: they change nothing that is learnt."""


class Found(NamedTuple):
    """A run to go on with."""

    folder: Path
    checkpoint: Path
    state: dict[str, Any]
    """What the checkpoint holds."""
    passed_over: tuple[str, ...]
    """Newer checkpoints and runs that cannot be gone on with, and why, a sentence each."""


def resumed_session(
    preset: str,
    run: str,
    device: Device,
    settings: Iterable[str] = (),
    flags: Mapping[str, Any] = MappingProxyType({}),
    own_terms: Iterable[Path] = (),
    ranks: Ranks = Ranks(),  # noqa: B008 - frozen
) -> Session:
    """Make a session that goes on with a run, in the run's own folder and with its own settings.

    Nothing on disk changes before all is known to be right.

    Args:
        preset: the preset that the run trained, by name or path.
        run: the run's folder, its name under `runs/<preset>/`, or "latest".
        device: where to train; may be another than before.
        settings: `key=value` texts of `--set`; only `CHANGEABLE` ones may change anything.
        flags: values of the options in `overrides.FLAGS`; None where one was not given.
        own_terms: Python files with a person's own terms, if the run was trained with any.
        ranks: who trains; may be another number than before.

    Raises:
        PresetError: there is no such run, it is being written, none of its checkpoints can be
            read, it trained something else, or it is done already.
    """
    settings, own_terms = tuple(settings), tuple(own_terms)
    name = run_name(flags["--env"]) if flags.get("--env") is not None else filed_under(preset)
    found = _newest_run(name) if run == LATEST else _named_run(name, run)
    require_own_terms(found.folder, own_terms)
    trained = load(str(found.folder / "config.toml"), (), device.kind, own_terms=own_terms)
    if trained.preset.name != name:
        asked = load(preset, settings, device.kind, flags, own_terms)
        raise PresetError(_another_preset(found.folder, trained, asked))
    asked = load(str(found.folder / "config.toml"), settings, device.kind, flags, own_terms)
    if problems := _conflicts(trained, asked):
        raise PresetError(problems)

    require_tracker(asked)
    require_adapter(asked)
    require_memory(asked.preset, device.name, ranks.own.local_world_size)
    config = asked.preset.trainer
    done = found.state["completed_iterations"]
    if done >= config.num_iterations:
        raise PresetError(
            [
                f"{found.folder}: has done {done} of {config.num_iterations} iterations; "
                f"to go on, give a larger total, such as --iterations {2 * done}"
            ]
        )
    notes = [*found.passed_over, *notes_on_state(ranks, found.state)]
    if asked.preset.env.adapter is not None:
        notes.append(f"worlds of {asked.preset.env.adapter} cannot be saved: they begin anew")
    state = checkpoint.for_rank(found.state, 0, ranks.own.world_size)
    before = found.state.get("device", device.name)
    if before.partition(":")[0] != device.kind:
        notes.append(
            f"the worlds begin anew on {device.name}, as hard as they were; "
            f"trained on {before} so far: the learner goes on"
        )
    elif checkpoint.WORLDS_BEFORE not in state and (lacks := worlds_lacking(state, config)):
        how_hard = "" if "env" in lacks else ", as hard as they were"
        notes.append(
            f"the worlds begin anew{how_hard}; {found.checkpoint.name} holds no "
            f"{', '.join(lacks)}: the learner goes on"
        )
        state = checkpoint.with_new_worlds(state)
    notes += notes_on(asked, device, ranks)
    try:
        run_dir = RunDir.reopen(found.folder, to_toml(asked.preset), done)
    except RunDirError as error:
        raise PresetError([f"--resume {error}"]) from None
    session = Session(
        name,
        lambda: build_env(asked.preset, device, session, asked.own_terms),
        config,
        run_dir,
        device.name,
        tuple(notes),
        resume=state,
        join=joining(ranks, asked.preset, device.name, asked.own_terms, run_dir.log, found.state),
        num_envs=asked.preset.env.num_envs,
        own_terms=tuple(map(str, asked.own_terms)),
    )
    return session


def _named_run(preset: str, run: str) -> Found:
    """Find a run by its folder, or by its name among the preset's runs."""
    folder = find_run(run, preset, "--resume")
    _refuse_busy(folder)
    newest = _newest_checkpoint(folder)
    if newest.path is None:
        raise PresetError([*newest.unreadable, _nothing_in(folder, newest.unreadable)])
    return Found(folder, newest.path, newest.state, newest.unreadable)


def _newest_run(preset: str) -> Found:
    """Find the newest run of a preset that has a readable checkpoint."""
    require_readable()
    passed_over: list[str] = []
    for folder in runs(preset):
        _refuse_busy(folder)
        newest = _newest_checkpoint(folder)
        passed_over += newest.unreadable
        if newest.path is not None:
            return Found(folder, newest.path, newest.state, tuple(passed_over))
        passed_over.append(_nothing_in(folder, newest.unreadable))
    raise PresetError(
        [*passed_over, f"--resume {LATEST}: no run in {RUNS / preset} has a readable checkpoint"]
    )


def _newest_checkpoint(folder: Path) -> checkpoint.Newest:
    let_torch_threads_sleep()
    try:
        return checkpoint.newest_readable(folder / "checkpoints", LEARNER)
    except CheckpointError as error:
        raise PresetError([str(error)]) from None


def _nothing_in(folder: Path, unreadable: tuple[str, ...]) -> str:
    return f"{folder}: has no " + ("readable checkpoint" if unreadable else "checkpoint yet")


def _refuse_busy(folder: Path) -> None:
    if (pid := writer(folder)) is not None:
        raise PresetError(
            [f"{folder}: is being trained right now by process {pid}; stop that one first"]
        )


def _another_preset(folder: Path, trained: Resolved, asked: Resolved) -> list[str]:
    there, here = trained.preset.name, asked.preset.name
    return [
        f"{folder}: is a run of {there}, not of {here}; what differs:",
        *(
            f"  {format_key(path)}: {_shown(ours)} in the run, {_shown(theirs)} in {here}"
            for path, (ours, theirs) in differences(trained.preset, asked.preset).items()
            if path not in (("name",), ("description",))
        ),
    ]


def _conflicts(trained: Resolved, asked: Resolved) -> list[str]:
    """Say which changes of the command line a run that goes on cannot follow."""
    return [
        f"{locate(path, theirs, asked.origins.get(format_key(path), '--set'))}: "
        f"the run was trained with {_shown(ours)}; "
        f"only --device, {', '.join(CHANGEABLE)} may change when a run goes on"
        for path, (ours, theirs) in differences(trained.preset, asked.preset).items()
        if format_key(path) not in CHANGEABLE
    ]


def _shown(value: object) -> str:
    if value is None:
        return "unset"
    text = format_value(value)
    return text if len(text) <= 40 else text[:37] + "..."
