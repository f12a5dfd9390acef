"""Progress: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from tqdm import tqdm

from duelay._core.say import say as say_aloud


@contextlib.contextmanager
def watched(
    total: int,
    unit: str,
    *,
    done: int = 0,
    quiet: bool = False,
    say: Callable[[str], None] | None = None,
) -> Iterator[Callable[[str], None]]:
    """Give a function to call after each step, with words for it.

    On a terminal that function moves a bar, with the time left. Elsewhere it says a line. With
    `quiet` it does nothing.
    """
    say = say or say_aloud
    is_terminal = not quiet and sys.stderr is not None and sys.stderr.isatty()
    # smoothing=0: the time left is by the mean of all steps, since these differ a hundredfold.
    bar = tqdm(total=total, initial=done, unit=unit, disable=not is_terminal, smoothing=0)

    def step(words: str) -> None:
        nonlocal done
        done += 1
        bar.update(1)
        if not (is_terminal or quiet):
            say(f"{done}/{total} {words}")

    with bar:
        yield step
