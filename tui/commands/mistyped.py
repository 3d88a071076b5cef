"""A good word for a command that there is none of: what it may have meant, as it would be typed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, NoReturn

from tui.commands.once import OnceEachGroup

TRAIN, RESUME, PLAY = "run {PRESET}", "run PRESET --resume {RUN}", "play {RUN}"
SHOW, WATCH, COMPARE = "show {PRESET}", "watch {RUN}", "runs compare {A B}"
EXPORT, IMPORT = "export {RUN}", "import {CHECKPOINT} --preset PRESET"
LIST = "presets, or ppo-tui runs"

OTHER_NAMES = {
    "attach": WATCH,
    "check": "doctor",
    "compare": COMPARE,
    "config": SHOW,
    "continue": RESUME,
    "convert": EXPORT,
    "describe": SHOW,
    "diff": COMPARE,
    "enjoy": PLAY,
    "eval": PLAY,
    "evaluate": PLAY,
    "fit": TRAIN,
    "help": "--help",
    "info": SHOW,
    "learn": TRAIN,
    "list": LIST,
    "load": IMPORT,
    "ls": LIST,
    "monitor": WATCH,
    "onnx": EXPORT,
    "replay": WATCH,
    "resume": RESUME,
    "rollout": PLAY,
    "start": TRAIN,
    "status": "runs",
    "tasks": "presets",
    "test": PLAY,
    "train": TRAIN,
    "version": "--version",
    "view": WATCH,
}
"""Names that other programs give to our commands; what a person wrote behind it goes in braces."""


class Commands(OnceEachGroup):
    """The commands, with a good word for those who mistype one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - typer's own types
        """Find the command that was asked for."""
        if self.get_command(ctx, args[0]) is None:
            self._refuse(ctx, args)
        return super().resolve_command(ctx, args)

    def _refuse(self, ctx: Any, args: list[str]) -> NoReturn:  # noqa: ANN401 - typer's own type
        from presets.files import names
        from tui.draw.spans import printable

        commands, presets = self.list_commands(ctx), names()
        meant = command_meant(args, commands, presets)
        hint = f"; did you mean ppo-tui {meant}?" if meant else ""
        ctx.fail(
            printable(
                f'no command "{args[0]}"{hint}\n'
                f"commands: {', '.join(commands)}\npresets: {', '.join(presets)}"
            )
        )


def command_meant(args: Sequence[str], commands: Sequence[str], presets: Sequence[str]) -> str:
    """Return the command line that a person meant, without the program's name, or nothing.

    Args:
        args: what was typed; its first word is no command.
        commands: those there are.
        presets: those there are; one alone stands for training it.
    """
    from presets.problems import nearest

    wrong, *rest = args
    if wrong in presets or wrong.endswith(".toml"):
        return shlex.join(["run", *args])
    if (template := OTHER_NAMES.get(wrong.lower())) is not None:
        return _filled(template, rest)
    if command := nearest(wrong, commands):
        return shlex.join([command, *rest])
    if other := nearest(wrong, OTHER_NAMES):
        return _filled(OTHER_NAMES[other], rest)
    if preset := nearest(wrong, presets):
        return shlex.join(["run", preset, *rest])
    return ""


def _filled(template: str, rest: Sequence[str]) -> str:
    """What stands in braces is replaced by what a person wrote, if that begins with no option."""
    before, brace, behind = template.partition("{")
    if not brace:
        return template
    placeholder, _, after = behind.partition("}")
    given = shlex.join(rest) if rest and not rest[0].startswith("-") else placeholder
    return before + given + after
