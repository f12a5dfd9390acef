"""Verdicts in words: what is known of the arms when an experiment ends."""

from __future__ import annotations

from collections.abc import Sequence


def points(share: float) -> str:
    """Return a difference of preference in points.

    >>> points(0.05), points(0.01), points(0.0025)
    ('5 points', '1 point', '0.25 points')
    """
    value = f"{100.0 * share:.2g}"
    return f"{value} point" + "s" * (value != "1")


def listed(names: Sequence[str], word: str = "and") -> str:
    """Return names as a list in a sentence.

    >>> listed(["red", "green", "blue"]), listed(["red", "green"], "or")
    ('red, green and blue', 'red or green')
    """
    return f" {word} ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def describe_verdict(
    verdict: str, best: str, margin: float | None, alike: Sequence[str], worse: Sequence[str]
) -> str:
    """Return a verdict of the evidence as a sentence without its end.

    Parameters
    ----------
    verdict : "winner", "good_enough" or "equivalent".
    best : the arm of the verdict.
    margin : the largest difference that does not matter.
    alike, worse : the arms that differ from it by less than the margin, and those that it beats.
    """
    if verdict == "winner" or margin is None:
        return f"{best} wins"
    if verdict == "good_enough":
        return f"choose {best}: less than {points(margin)} are lost"
    apart = f"; {best} beats {listed(worse)}" if worse else ""
    if len(alike) == 1:
        return f"{best} and {alike[0]} differ by less than {points(margin)}, either will do{apart}"
    return (
        f"{listed(alike)} each differ from {best} by less than {points(margin)}, any of these "
        f"will do{apart}"
    )
