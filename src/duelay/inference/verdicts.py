"""Verdicts in words: what is known of the arms when an experiment ends."""

from __future__ import annotations

from collections.abc import Sequence

from duelay.inference.rates import lift_of


def points(share: float) -> str:
    """Return a difference of preference in points.

    >>> points(0.05), points(0.01), points(0.0025)
    ('5 points', '1 point', '0.25 points')
    """
    value = f"{100.0 * share:.2g}"
    return f"{value} point" + "s" * (value != "1")


def difference(from_half: float, shows_one: bool) -> str:
    """Return how far a share of wins is from 1/2; where one arm is shown at a time, as a lift.

    >>> difference(0.05, False), difference(0.05, True), difference(1 / 22, True)
    ('5 points', 'a lift of 22.2 %', 'a lift of 20 %')
    """
    return f"a lift of {_lift(from_half)}" if shows_one else points(from_half)


def lost(from_half: float, shows_one: bool) -> str:
    """Return what is lost with an arm whose share of wins is so far below 1/2.

    >>> lost(0.004, False), lost(0.004, True)
    ('0.4 points', '1.61 % of conversions')
    """
    return f"{_lift(from_half)} of conversions" if shows_one else points(from_half)


def _lift(from_half: float) -> str:
    return f"{100.0 * float(lift_of(0.5 + from_half)):.3g} %"


def listed(names: Sequence[str], word: str = "and") -> str:
    """Return names as a list in a sentence.

    >>> listed(["red", "green", "blue"]), listed(["red", "green"], "or")
    ('red, green and blue', 'red or green')
    """
    return f" {word} ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def describe_verdict(
    verdict: str,
    best: str,
    margin: float | None,
    alike: Sequence[str],
    worse: Sequence[str],
    *,
    shows_one: bool,
) -> str:
    """Return a verdict of the evidence as a sentence without its end.

    Parameters
    ----------
    verdict : "winner", "good_enough" or "equivalent".
    best : the arm of the verdict.
    margin : the smallest difference from 1/2 that matters.
    alike, worse : the arms that differ from it by less than the margin, and those that it beats.
    shows_one : whether one arm is shown at a time, so that the margin is said as a lift.
    """
    if verdict == "winner" or margin is None:
        return f"{best} wins"
    if verdict == "good_enough":
        if shows_one:
            size = difference(margin, shows_one)
            return f"choose {best}: no other arm has {size} or more over it"
        return f"choose {best}: less than {points(margin)} are lost"
    apart = f"; {best} beats {listed(worse)}" if worse else ""
    size = difference(margin, shows_one)
    if len(alike) == 1:
        return f"{best} and {alike[0]} differ by less than {size}, either will do{apart}"
    return (
        f"{listed(alike)} each differ from {best} by less than {size}, any of these will do{apart}"
    )
