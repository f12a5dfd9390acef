"""What the commands have in common: numbers as people write them, errors in the shell's words."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from duelay._core import checks
from duelay._core.user_modules import bring_in
from duelay.delays.time_units import CLOCK
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
_IN_THE_SHELL = {
    CLOCK: "--traffic poisson:10s",
    "recommend()": "`duelay recommend`",
    "a time_format that is told": "a --time-format that is told",
}
_ARGUMENTS = {"n_arms": "--arms", "order_free": "--order-given"}


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
    """A command whose errors name its options where Python would name arguments."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it."""
        try:
            return super().invoke(ctx)
        except ValueError as error:
            raise InvalidValueError(self.in_words_of_the_shell(str(error))) from error

    def in_words_of_the_shell(self, sentence: str) -> str:
        """Return a sentence about arguments as one about options.

        An argument is the first word of its sentence, or stands with a value as Python writes it:
        ``target='borda'`` becomes ``--target borda``, ``columns={'first': 'left'}`` becomes
        ``--column first=left``, and a flag's ``=True`` is left out. Within the text of a
        policy or a law nothing changes: ``delay=learn`` stays, as it is an argument of the policy.
        """
        for code, words in _IN_THE_SHELL.items():
            sentence = sentence.replace(code, words)
        if sentence.startswith(("--policy ", "policy '", "law '")):
            sentence = re.sub(r"\bNone\b", "none", sentence)
            return re.sub(r"\b(\w+)='([\w-]+)'", r"\1=\2", sentence)
        own = [param for param in self.params if isinstance(param, click.Option)]
        options = {str(option.name): option.opts[0] for option in own}
        options |= {name: word for name, word in _ARGUMENTS.items() if word in options.values()}
        if not options:
            return sentence
        names = "|".join(re.escape(name) for name in options)
        sentence = re.sub(rf"\A({names})\b(?=[ ,])", lambda m: options[m[1]], sentence)
        sentence = re.sub(rf"\b({names})=True\b", lambda m: options[m[1]], sentence)
        sentence = re.sub(
            rf"\b({names})=(?:'([\w/-]+)'|(\d+))",
            lambda m: f"{options[m[1]]} {m[2] or m[3]}",
            sentence,
        )

        def pair(found: re.Match[str]) -> str:
            name = "" if found[3] == "None" else found[3].strip("'")
            return f"{options[found[1]]} {shlex.quote(f'{found[2]}={name}')}"

        return re.sub(rf"\b({names})=\{{'(\w+)': ('[^']*'|None)\}}", pair, sentence)


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
    """``--import``, for modules that name policies and laws of somebody's own."""
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
