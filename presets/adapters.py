"""Worlds of other programs: what `--env` names, which preset it starts from, and making them."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from presets.extras import require
from presets.problems import PresetError, did_you_mean, locate

if TYPE_CHECKING:
    from presets.loader import Resolved
    from sim.config import EnvConfig
    from trainer.env import Env

BASES = Path(__file__).parent / "bases"
"""Presets that hold the learner's settings for worlds that are named by `--env` alone."""

FORMS = "gymnasium:ID, mjlab:TASK, package.module:function or file.py:function"


class Source(NamedTuple):
    """Where worlds come from."""

    package: str
    """gymnasium, mjlab, or where a function is found: a module, or a .py file."""
    name: str
    """The environment, the task, or the function."""


def parse(text: str) -> Source:
    """Read the name of an adapter's worlds.

    Raises:
        PresetError: it is none.
    """
    package, colon, name = text.partition(":")
    if not colon or not package or not name:
        raise PresetError([f"{text}: must be {FORMS}"])
    return Source(package, name)


def base_for(text: str) -> str:
    """Return the preset, as a path, whose settings stand where only `--env` is given.

    Raises:
        PresetError: the text names no worlds.
    """
    kind = "gymnasium" if parse(text).package == "gymnasium" else "rsl_rl"
    return str(BASES / f"{kind}.toml")


def run_name(text: str) -> str:
    """Return the name under which runs of these worlds are kept: CartPole-v1.

    Raises:
        PresetError: the text names no worlds.
    """
    source = parse(text)
    where = Path(source.package).stem if source.package.endswith(".py") else source.package
    name = source.name if where in ("gymnasium", "mjlab") else f"{where}.{source.name}"
    return re.sub(r"[^\w.+-]", "-", name).lstrip(".+-") or "env"


def require_adapter(resolved: Resolved) -> None:
    """Refuse worlds that cannot be made here. Imports what they come from, but not torch if it can.

    Raises:
        PresetError: a package, environment or function is missing, or has spaces that PPO's
            Gaussian cannot fill; says which.
    """
    env = resolved.preset.env
    if env.adapter is None:
        return
    said = locate(("env", "adapter"), env.adapter, resolved.origins["env.adapter"])
    source = parse(env.adapter)
    if source.package == "gymnasium":
        require("gymnasium", "gymnasium", said)
        _check_gymnasium(source.name, dict(env.adapter_options or {}), said)
    elif source.package == "mjlab":
        if importlib.util.find_spec("mjlab") is None:
            raise PresetError([f"{said}: needs the package mjlab; install it: pip install mjlab"])
    else:
        _function(source, said)


def build_adapter(env: EnvConfig, device: str, seed: int) -> Env:
    """Make the worlds. Imports torch, and what the worlds come from.

    Args:
        env: the settings, with an adapter.
        device: where all tensors live, as torch names it.
        seed: of the worlds.

    Raises:
        PresetError: a package or function is missing.
        TypeError: what the function returns is no worlds.
    """
    from trainer.adapters import rsl_rl

    assert env.adapter is not None
    source = parse(env.adapter)
    options = dict(env.adapter_options or {})
    if source.package == "gymnasium":
        from trainer.adapters.gymnasium import make

        return make(source.name, env.num_envs, seed, device, **options)
    if source.package == "mjlab":
        return rsl_rl.RslRlEnv(
            rsl_rl.make_mjlab(source.name, env.num_envs, seed, device, **options)
        )
    made: Any = _call(_function(source, env.adapter), env.num_envs, seed, device, options)
    if callable(getattr(made, "get_observations", None)):
        return rsl_rl.RslRlEnv(made)
    if hasattr(made, "single_observation_space"):
        from trainer.adapters.gymnasium import GymnasiumEnv

        return GymnasiumEnv(made, seed, device)
    raise TypeError(
        f"{env.adapter} returned a {type(made).__name__}: "
        "it must return a vectorised env of RSL-RL or of gymnasium"
    )


def _check_gymnasium(name: str, options: dict[str, Any], said: str) -> None:
    """Make one world, to see that there is such an environment, and that PPO can learn in it."""
    import gymnasium

    from trainer.adapters.spaces import complaint

    try:
        spec = gymnasium.spec(name)
    except gymnasium.error.Error as error:
        hint = did_you_mean(name, gymnasium.registry)
        what = str(error).splitlines()[0].rstrip(".")
        raise PresetError([f"{said}: {what}{'' if 'Did you mean' in what else hint}"]) from None
    own = {key: value for key, value in options.items() if key != "vectorization_mode"}
    try:
        world = gymnasium.make(spec, **own)
    except Exception as error:  # whatever an environment does when it is made
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise PresetError([f"{said}: cannot be made: {what}"]) from None
    try:
        why_not = complaint(world.observation_space, world.action_space)
    finally:
        world.close()
    if why_not:
        raise PresetError([f"{said}: {why_not}"])


def _function(source: Source, said: str) -> Callable[..., Any]:
    """Find the function that makes the worlds."""
    try:
        module: Any = (
            _module_of_file(Path(source.package))
            if source.package.endswith(".py")
            else importlib.import_module(source.package)
        )
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        raise PresetError(
            [f"{said}: cannot be imported: {type(error).__name__}: {error}"]
        ) from None
    found = getattr(module, source.name, None)
    if not callable(found):
        known = [name for name, value in vars(module).items() if inspect.isfunction(value)]
        hint = did_you_mean(source.name, known)
        raise PresetError([f"{said}: {source.package} has no function {source.name}{hint}"])
    return found  # type: ignore[no-any-return]


def _module_of_file(path: Path) -> object:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _call(
    function: Callable[..., Any], num_envs: int, seed: int, device: str, options: dict[str, Any]
) -> object:
    """Call it with what it takes of our settings, and with its own options."""
    taken = inspect.signature(function).parameters
    anything = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in taken.values())
    ours = {"num_envs": num_envs, "seed": seed, "device": device}
    given = {name: value for name, value in ours.items() if anything or name in taken}
    return function(**given, **options)
