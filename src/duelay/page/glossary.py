"""The words of the page, explained: a sentence that appears beside a word, and more on /words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """A word of the page."""

    name: str
    meaning: str  # in a sentence, without other words of this list where possible
    more: str = ""  # what else helps to read the page


WORDS = {
    "arm": Word(
        "Arm",
        "One of the alternatives that are compared, such as a headline or a button.",
        "Others say variant, version or treatment.",
    ),
    "duel": Word(
        "Duel",
        "Two arms shown to one visitor, in an order that a coin decides.",
        "A visitor who comes back gets the open duel again. The coin makes late answers fair: "
        "either arm is shown first equally often, so that neither gains from being first.",
    ),
    "heard": Word(
        "Heard",
        "Duels with an answer so far.",
        "An answer that comes twice counts once.",
    ),
    "pending": Word(
        "Pending",
        "Duels that have no answer yet, and whose answer would still count.",
        "Many of them will never be answered. The page estimates how many still come.",
    ),
    "silent": Word(
        "Silent",
        "Duels whose time for an answer, the window, has ended without one.",
        "Silence says a little, too: if an arm that is shown first is often silent, it is less "
        "often preferred.",
    ),
    "window": Word(
        "Window",
        "How long an answer may take. A later one does not count.",
    ),
    "repeat": Word(
        "Repeats",
        "Further duels of a visitor on two arms that this visitor has answered before.",
        "They do not count, because one visitor must not decide an experiment.",
    ),
    "evidence": Word(
        "Evidence",
        "How strongly the answers speak for an arm against the arm that it beats least clearly.",
        "It is a number of times: 20 says that the answers are 20 times as likely if the arm is "
        "better than if the two are equal. You may look at it as often as you like.",
    ),
    "way": Word(
        "Way to a decision",
        "How much of the evidence that a decision needs has come: 100 % is a decision.",
        "It is the logarithm of the evidence over the logarithm of what is needed. While traffic "
        "and preferences stay the same, it grows evenly, and may go back a little.",
    ),
    "chance": Word(
        "Chance of being the best",
        "How likely it is that the arm beats all others, given all answers so far.",
        "It is an opinion: it rests on what experiments are usually like, and no guarantee holds "
        "for it. Stop when a winner is declared, not when a chance is high.",
    ),
    "loss": Word(
        "Expected loss",
        "How many of 100 visitors would rather have another arm than the one that is ahead now, "
        "less those who would not, on average over what is still possible.",
        "It is an opinion, as the chance is. A small one says that stopping now is safe, whichever "
        "arm is the best.",
    ),
    "cost": Word(
        "Cost so far",
        "Visitors who were shown a weaker arm and would have chosen the best one, less those who "
        "would not.",
        "It compares the experiment with one that had shown the best arm alone from the start.",
    ),
    "further": Word(
        "Cost of a further arm",
        "How many more duels it takes until a verdict if an arm joins now.",
        "It is a forecast from the answers so far and from what arms usually are like, since "
        "nobody knows how good a new arm is. In about four experiments of five the true number is "
        "in the range.",
    ),
    "declared": Word(
        "Declared",
        "An arm is declared the winner once the evidence for it is enough.",
        "A declared winner is wrong in at most the stated share of experiments, however often "
        "somebody looks.",
    ),
    "rate": Word(
        "Rate",
        "Of the visitors who saw the arm and whose time to convert is over, the share that did.",
        "Visitors who may still convert are not in it, so that it is not too small at first.",
    ),
    "lift": Word(
        "Lift",
        "By how much the conversion rate of one arm is higher than that of another, in percent of "
        "the latter.",
        "It uses all conversions that are heard, also of visitors who may still convert.",
    ),
    "interval": Word(
        "Interval",
        "Where the true number is, with the stated confidence, however often you look.",
        "All intervals of the page hold at once.",
    ),
}


def strength(value: float | None, needed: float = 100.0) -> str:
    """Return evidence in a word.

    >>> [strength(value) for value in (1.0, 5.0, 30.0, 150.0, 40_764.0)]
    ['hardly any', 'some', 'strong', 'enough', 'overwhelming']
    """
    if value is None:
        return ""
    for least, word in ((10.0 * needed, "overwhelming"), (needed, "enough"), (10.0, "strong"),
                        (3.0, "some")):  # fmt: skip
        if value >= least:
            return word
    return "hardly any"
