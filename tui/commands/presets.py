"""The commands `presets` and `show`: what can be trained, and every value of it."""

from __future__ import annotations

from tui.commands.options import (
    DeviceChoice,
    Iterations,
    NumEnvs,
    PresetName,
    Seed,
    Settings,
    Terms,
)
from tui.commands.refusing import refusing_bad_input


def presets() -> None:
    """List the presets: ours, those in ./presets, and your own."""
    from presets.files import files
    from presets.loader import describe
    from tui.draw.spans import clean  # with it comes rich

    found = files()
    width = max(len(file.name) for file in found)
    for file in found:
        where = "" if file.is_ours else f"  ({file.label})"
        print(f"{file.name:<{width}}  {clean(describe(file))}{where}".rstrip())


def show(
    preset: PresetName,
    device: DeviceChoice = "auto",
    num_envs: NumEnvs = None,
    iterations: Iterations = None,
    seed: Seed = None,
    settings: Settings = None,
    terms: Terms = None,
) -> None:
    """Show every value of a preset, and its origin."""
    with refusing_bad_input():
        from presets.build import resolve_device
        from presets.loader import load, to_toml
        from presets.time_scales import time_scales

        chosen = resolve_device(device)
        flags = {"--num-envs": num_envs, "--iterations": iterations, "--seed": seed}
        resolved = load(preset, settings or (), chosen.kind, flags, terms or ())
    print(f"# {resolved.file.label} on {chosen.name}; behind each value its origin")
    print("#", *time_scales(resolved.preset.env), sep="\n# ", end="\n\n")
    print(to_toml(resolved.preset, resolved.origins), end="")
