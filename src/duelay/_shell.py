"""What the commands have in common: numbers as people write them, errors in the shell's words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from duelay import _checks

if TYPE_CHECKING:
    _Kind = click.ParamType[int]
else:
    _Kind = click.ParamType

_ARGUMENTS = {"n_arms": "--arms", "is_order_free": "--order-given", "is_anonymous": "--anonymous"}


class Whole(_Kind):
    """A whole number, also as TOML may have it: 20000, 20_000 or 2e4."""

    name = "whole number"

    def __init__(self, least: int = 1) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: Any) -> int:
        """Return the number, or refuse it by the name of its option."""
        number = value
        for kind in (float, int):
            try:
                number = kind(value)
            except (ValueError, OverflowError):
                continue
        return _checks.whole(param.opts[0] if param else "number", number, least=self.least)


class Command(click.Command):
    """A command whose errors name its options where Python would name arguments."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it."""
        try:
            return super().invoke(ctx)
        except ValueError as error:
            raise ValueError(self.in_words_of_the_shell(str(error))) from error

    def in_words_of_the_shell(self, sentence: str) -> str:
        """Return a sentence about arguments as one about options.

        An argument is the first word of its sentence, or stands with a value as Python writes it:
        ``target='borda'`` becomes ``--target borda``.
        """
        own = [param for param in self.params if isinstance(param, click.Option)]
        options = {str(option.name): option.opts[0] for option in own}
        options |= {name: word for name, word in _ARGUMENTS.items() if word in options.values()}
        if not options:
            return sentence
        names = "|".join(re.escape(name) for name in options)
        sentence = re.sub(rf"\A({names})\b(?=[ ,])", lambda m: options[m[1]], sentence)
        return re.sub(rf"\b({names})='([\w-]+)'", lambda m: f"{options[m[1]]} {m[2]}", sentence)


class Group(click.Group):
    """A group of such commands."""

    command_class = Command
