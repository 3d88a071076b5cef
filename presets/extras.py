"""What is not installed by default: naming the extra that brings it, before anything is made."""

from __future__ import annotations

import importlib.util

from presets.problems import PresetError


def require(package: str, extra: str, wanted: str) -> None:
    """Refuse what needs a package that is not installed. Does not import it.

    Args:
        package: the package, by the name under which it is imported.
        extra: the extra of this program that installs it.
        wanted: what needs it, as a person wrote it.

    Raises:
        PresetError: it is not installed; names the extra.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.loader is None or spec.origin is None:  # or a mere folder of this name
        raise PresetError(
            [f"{wanted}: needs the package {package}; install it: pip install 'ppo-tui[{extra}]'"]
        )
