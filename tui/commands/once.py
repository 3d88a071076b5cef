"""Commands whose options say one thing: none given twice, and a clear word for a wrong number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from tui.commands.refusing import refuse


class _OnceEach:
    """Refuses an option of one value that is given twice.

    The last one would count, and the others be lost without a word.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own type
        """Read the command line."""
        given = list(args)
        self._refuse_repeated(ctx, given)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            param = error.param
            if param is None or "valid int" not in error.message:
                raise
            option = next((name for name in param.opts if _values(name, given)), param.opts[0])
            value = (_values(option, given) or [""])[-1]
            refuse([f"{option} {value}: must be a whole number"])

    def _refuse_repeated(self, ctx: Any, args: list[str]) -> None:  # noqa: ANN401 - typer's own type
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for param, count in Counter(order).items():
            single = param.param_type_name == "option" and not param.multiple and not param.is_flag
            if single and count > 1:
                values = [value for name in param.opts for value in _values(name, args)]
                said = f" ({', '.join(values)})" if values else ""
                refuse([f"{param.opts[0]} is given {count} times{said}; give it once"])


class OnceEach(_OnceEach, TyperCommand):
    """A command whose options of one value are given once each."""


class OnceEachGroup(_OnceEach, TyperGroup):
    """A group of commands whose own options of one value are given once each."""


def _values(option: str, args: Sequence[str]) -> list[str]:
    """What stands behind an option, each time it is given."""
    found = []
    for place, word in enumerate(args):
        if word == option:
            found += args[place + 1 : place + 2]
        elif word.startswith(f"{option}="):
            found.append(word.removeprefix(f"{option}="))
    return found
