"""Python and the packages: which are there, and whether they are what this program asks for."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
from collections.abc import Iterator

from tui.doctor.findings import Finding, Verdict

SHOWN = ("torch", "mujoco", "mujoco-warp", "warp-lang", "textual")
"""Packages with a line of their own; others only where something is wrong."""

EXTRAS = {
    "onnx": ("export", "ppo-tui export writes ONNX files"),
    "wandb": ("wandb", "--logger wandb sends metrics to Weights & Biases"),
    "gymnasium": ("gymnasium", "--env gymnasium:NAME trains in its worlds"),
    "tensorboard": ("", "tensorboard --logdir runs shows the curves in a browser"),
}
"""Package to the extra that brings it, and what it is for."""


def python() -> Iterator[Finding]:
    """The interpreter, and the packages that must be there."""
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

    wanted = SpecifierSet(str(_metadata()["Requires-Python"] or ""))
    version = platform.python_version()
    yield _judged("Python", version, wanted.contains(version), str(wanted), "install that one")
    for text in importlib.metadata.requires("ppo-tui") or ():
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        name, allowed = requirement.name, str(requirement.specifier)
        remedy = f"pip install '{name}{allowed}'"
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield _judged(name, "not installed", False, allowed, remedy)
            continue
        fits = requirement.specifier.contains(found, prereleases=True)
        if name in SHOWN or not fits:
            yield _judged(name, found, fits, allowed, remedy)


def extras() -> Iterator[Finding]:
    """What is there only if it was asked for."""
    for package, (extra, purpose) in EXTRAS.items():
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            yield Finding(package, importlib.metadata.version(package), purpose)
            continue
        what = f"ppo-tui[{extra}]" if extra else package
        yield Finding(
            package,
            "not installed",
            f"needed only for this: {purpose}",
            Verdict.NOTE,
            f"pip install '{what}'",
        )


def _metadata() -> importlib.metadata.PackageMetadata:
    return importlib.metadata.metadata("ppo-tui")


def _judged(name: str, found: str, fits: bool, allowed: str, remedy: str) -> Finding:
    if fits:
        return Finding(name, found)
    return Finding(name, found, f"needed is {allowed}", Verdict.PROBLEM, remedy)
