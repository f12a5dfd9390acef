"""What the commands have in common: numbers as people write them, errors in the shell's words."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from duelay._core import checks
from duelay._core.user_modules import bring_in
from duelay.errors import InvalidValueError

if TYPE_CHECKING:
    _Kind = click.ParamType[int]
else:
    _Kind = click.ParamType

C = TypeVar("C", bound=Callable[..., Any])
EPILOG = """
Laws and policies are written name:argument,key=value, for example geometric:0.01,
never:0.3,geometric:0.01 or rucb-delay:alpha=1,window=500.
"""
_PARAMETERS = {"n_arms": "arms"}  # arguments of the library by other names


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
        return checks.whole(param.opts[0] if param else "number", number, least=self.least)


class Window(Whole):
    """A whole number of ticks, or a duration such as 14d."""

    name = "window"

    def convert(self, value: Any, param: click.Parameter | None, ctx: Any) -> Any:
        """Return the window, or refuse it by the name of its option."""
        if checks.is_number(str(value)):
            return super().convert(value, param, ctx)
        return checks.duration(param.opts[0] if param else "window", value)


class Command(click.Command):
    """A command whose errors name its options where the library names arguments."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it."""
        try:
            return super().invoke(ctx)
        except InvalidValueError as error:
            option = self.option_of(error.argument)
            if option is None:
                raise
            sentence, name = str(error), f"{error.argument} "
            if sentence.startswith(name):
                sentence = f"{option.opts[0]} {sentence.removeprefix(name)}"
            else:
                form = f"{option.opts[0]} {option.metavar or ''}".strip()
                sentence = f"{sentence} (see {form})"
            raise InvalidValueError(sentence, argument=error.argument) from error

    def option_of(self, argument: str | None) -> click.Option | None:
        """Return the option that sets an argument of the library; None if there is none."""
        options = {param.name: param for param in self.params if isinstance(param, click.Option)}
        name = argument or ""
        return options.get(_PARAMETERS.get(name, name))


def feedback_option(words: Sequence[str], what: str) -> Callable[[C], C]:
    """``--feedback``; an unknown word is refused by the library's own check, not by click."""
    return click.option(
        "--feedback",
        default="conversions",
        show_default=True,
        metavar=f"[{'|'.join(words)}]",
        help=what,
    )


def import_option(command: Any) -> Any:
    """``--import``, for modules with policies and laws of the user."""
    return click.option(
        "--import",
        "modules",
        multiple=True,
        metavar="MODULE",
        help="A Python module with policies or laws of your own, in this folder or installed; may "
        "be given several times.",
    )(command)


def import_modules(modules: tuple[str, ...], *folders: Path) -> None:
    """Import what `--import` names, from the current folder, `folders` or the search path."""
    for name in modules:
        bring_in(name, [Path(), *folders])


def complain(sentence: object) -> None:
    """Say a sentence on standard error; on a terminal it is broken between words."""
    line = f"duelay: {sentence}"
    click.echo(wrapped("", line) if sys.stderr.isatty() else line, err=True)


def complain_of_usage(error: click.ClickException) -> None:
    """Say in one sentence what click found wrong, and which help tells more.

    A command that is typed without anything is no error: its help is shown.
    """
    if type(error).__name__ == "NoArgsIsHelpError":  # of click 8.2; earlier there is no error
        error.show()
        return
    words = " ".join(error.format_message().split()).removesuffix(".")
    ctx = getattr(error, "ctx", None)
    more = "" if ctx is None else f" ({ctx.command_path} --help tells more)"
    complain(f"{words[:1].lower()}{words[1:]}{more}")


def wrapped(head: str, words: str) -> str:
    """Words behind a head, broken between words where the terminal ends."""
    width = min(96, shutil.get_terminal_size().columns)
    return click.wrap_text(words, width, initial_indent=head, subsequent_indent=" " * len(head))
