"""The summary of a live experiment: the numbers that a manager asks for, and sentences on them.

The service sends it as JSON, the page and `duelay standing` show it, and a picture is made of it.
Differences are shares of visitors: 0.12 says that of 100 visitors who see both arms, 12 more choose
the one than the other. An arm that wins a share mu of its duels has a difference of 2 mu - 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from duelay.inference.alarms import REMARKS
from duelay.inference.verdicts import listed
from duelay.live.arrivals import DAY, time_left

if TYPE_CHECKING:
    from duelay.live.standing import LiveStanding

MIN_ANSWERS = 20  # of each arm that may still win, before an arm is said to lead
_MIN_CHANCE = 0.8  # of being the best, from which an arm leads; below it, arms are close
_MIN_CHANCE_OF_RIVAL = 0.1  # an arm with less is not named among those that are close
_MAX_CLOSE = 3  # arms that are named
_VERDICTS = ("winner", "good_enough", "equivalent")  # of the evidence, with its guarantee
_ENDS = (*_VERDICTS, "undecided", "no_winner", "off")
_KNOWN = ("close", "leads", "undecided", *_VERDICTS)  # an arm is best, as far as can be told

State = Literal[
    "no_answers",
    "too_early",
    "close",
    "leads",
    "no_winner",
    "off",
    "winner",
    "good_enough",
    "equivalent",
    "undecided",
]


@dataclass(frozen=True)
class Range:
    """An estimate, and the ends of its interval."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Difference:
    """How many more of all visitors choose an arm than its strongest rival."""

    arm: str
    rival: str
    value: float  # a share: 0.12 for 12 of 100 visitors
    lower: float
    upper: float
    confidence: float  # with which the interval, and the verdict if there is one, hold at all looks


@dataclass(frozen=True)
class ArmSummary:
    """What is known of an arm."""

    arm: str
    answers: int  # to duels with the arm, whoever won
    wins: float  # of these answers; a tie is half a win
    share: float | None  # of the answers that are wins; None without answers
    chance: float | None  # of being the best: an opinion, without a guarantee
    ahead: Range | None  # how many more choose the best arm than this one, as a share of visitors


@dataclass(frozen=True)
class Summary:
    """The numbers that a manager asks for. What is not known yet is None."""

    state: State
    headline: str  # a few words: who wins or leads, or that it is too early to say
    sentences: list[str]  # one for each number, in the order in which they are shown
    best: str | None  # the arm of the verdict, or that leads; None while it is too early
    difference: Difference | None
    chance: float | None  # that `best` is the best: an opinion, without a guarantee
    expected_loss: float | None  # of showing `best` to everybody from now on, a share of visitors
    cost: Range | None  # visitors so far who would have chosen `best`, less those who would not
    days_left: list[float] | None  # low and high, at this traffic: an opinion
    time_left: str  # the same in words, or why it is not known; empty where nothing is left
    lacks: str  # what is needed before an arm is said to lead; empty if nothing is
    doubts: list[str]  # why the numbers may be wrong: alarms of the tests of assumptions
    arms: list[ArmSummary]

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Summary:
        """Return the summary that a service has sent; fields of later versions are left out."""
        said = _known(cls, found)
        said["difference"] = _made(Difference, found["difference"])
        said["cost"] = _made(Range, found["cost"])
        said["arms"] = [
            ArmSummary(**{**_known(ArmSummary, arm), "ahead": _made(Range, arm["ahead"])})
            for arm in found["arms"]
        ]
        return cls(**said)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON has them."""
        return asdict(self)

    @property
    def text(self) -> str:
        """The summary as lines of text, to be copied."""
        return "\n".join([self.headline, *(f"- {words}" for words in self.sentences)])


def _known(kind: type[Any], found: Mapping[str, Any]) -> dict[str, Any]:
    return {field.name: found[field.name] for field in fields(kind)}


def _made(kind: type[Any], found: Mapping[str, Any] | None) -> Any:
    return None if found is None else kind(**_known(kind, found))


def summarise(standing: LiveStanding) -> Summary:
    """Return the summary of a standing."""
    doubts = [alarm.sentence for alarm in standing.alarms if alarm.name not in REMARKS]
    best, state = standing.leader, "off" if doubts else _state(standing)
    is_known = state in _KNOWN
    gap = _gaps(standing, best) if is_known else None
    rival = _rival(standing, best) if is_known else None
    difference = None
    if gap is not None and rival is not None and gap[rival] is not None:
        found = gap[rival]
        assert found is not None
        difference = Difference(standing.arms[best], standing.arms[rival], found.value,
                                found.lower, found.upper, _confidence(standing))  # fmt: skip
    chance = float(standing.chances[best]) if is_known else None
    loss = 2.0 * standing.loss if is_known else None
    cost = None if gap is None else _cost(standing, gap)
    days = _days_left(standing) if state in ("close", "leads") else None
    headline = _headline(standing, state)
    name = standing.arms[best]
    sentences = _doubt_words(doubts)
    lacks = _early_words(standing) if state in ("no_answers", "too_early") else ""
    if state == "off":
        lacks = "Numbers for a decision are left out until this is mended."
    sentences += [lacks] if lacks else []
    if state in ("close", "leads", "good_enough", "equivalent", "undecided"):
        said = standing.verdict_words
        is_name = any(said.startswith(arm) for arm in standing.arms)
        sentences += [f"{said if is_name else said[:1].upper() + said[1:]}."] if said else []
    if difference is not None:
        sentences.append(_difference_words(difference))
    if chance is not None and state in ("close", "leads"):
        sentences.append(f"The chance that {name} is the best: {percent(chance)}.")
    if loss is not None and state not in ("winner", "equivalent"):
        sentences.append(
            f"Expected loss if you stop now and show {name} to everybody: {of_100(loss)} visitors."
        )
    if cost is not None:
        sentences.append(_cost_words(cost, standing.tick))
    time = "" if state in _ENDS or standing.tick == 0 else _time_words(standing, days)
    if time:
        sentences.append(f"Time left{' at this traffic' if days else ''}: {time}.")
    return Summary(
        state=state,
        headline=headline,
        sentences=sentences,
        best=name if is_known else None,
        difference=difference,
        chance=chance,
        expected_loss=loss,
        cost=cost,
        days_left=days,
        time_left=time,
        lacks=lacks,
        doubts=doubts,
        arms=_arms(standing, gap, is_known),
    )


# Numbers.


def count_answers(standing: LiveStanding) -> NDArray[np.float64]:
    """(K,): the answers that count, to duels with each arm and another one."""
    assert standing.wins is not None
    return np.asarray(standing.wins.sum(axis=0) + standing.wins.sum(axis=1))


def is_early(standing: LiveStanding) -> bool:
    """Whether an arm that may still win has too few answers to say who leads."""
    if standing.is_sure:
        return False
    may_win = standing.candidates & standing.present
    return bool((count_answers(standing)[may_win] < MIN_ANSWERS).any())


def _state(standing: LiveStanding) -> State:
    verdict, evidence = standing.verdict, standing.evidence
    if verdict != "running" and (verdict != "undecided" or standing.is_heard):
        return cast(State, verdict)
    if not standing.is_heard:
        return "no_answers"
    if evidence is not None and evidence.is_out.all():
        return "no_winner"
    if is_early(standing):
        return "too_early"
    return "leads" if standing.chances[standing.leader] >= _MIN_CHANCE else "close"


def _gaps(standing: LiveStanding, best: int) -> list[Range | None]:
    """Return how many more visitors choose the best arm than each arm; None where nobody knows.

    The interval agrees with the verdict: a winner is not chosen less often than another arm.
    """
    found: list[Range | None] = []
    floor, ceiling = _ends_of_verdict(standing)
    for arm in range(len(standing.arms)):
        mean, lower, upper = (
            2.0 * float(values[best, arm]) - 1.0
            for values in (standing.mean, standing.lower, standing.upper)
        )
        if arm == best or not all(map(math.isfinite, (mean, lower, upper))):
            found.append(None)
            continue
        if standing.present[arm]:
            lower = max(lower, floor)
            upper = max(upper if lower > ceiling else min(upper, ceiling), lower)
        lower, upper = max(lower, -1.0), min(upper, 1.0)
        found.append(Range(min(max(mean, lower), upper), lower, upper))
    return found


def _ends_of_verdict(standing: LiveStanding) -> tuple[float, float]:
    """Return the least and the largest difference that the verdict leaves."""
    if standing.winner is not None:
        return 0.0, 1.0
    margin = None if standing.evidence is None else standing.evidence.margin
    if margin is None or standing.verdict not in ("good_enough", "equivalent"):
        return -1.0, 1.0
    return -2.0 * margin, 2.0 * margin if standing.verdict == "equivalent" else 1.0


def _confidence(standing: LiveStanding) -> float:
    """Return the probability with which all intervals hold, and the verdict if there is one.

    Intervals and verdict may each be wrong; they are made by different evidence.
    """
    lost = 1.0 - standing.confidence + (standing.error if standing.verdict in _VERDICTS else 0.0)
    return max(1.0 - lost, 0.0)


def _rival(standing: LiveStanding, best: int) -> int | None:
    """Return the arm that is most likely to be better than the best; None if none has answers."""
    mean, chances = standing.mean[best], standing.chances
    known = [arm for arm in range(len(standing.arms))
             if arm != best and standing.present[arm] and math.isfinite(mean[arm])]  # fmt: skip
    return min(known, key=lambda arm: (-chances[arm], mean[arm], arm), default=None)


def _cost(standing: LiveStanding, gap: Sequence[Range | None]) -> Range:
    """Return what the duels so far have cost, against showing the best arm alone.

    A duel costs the mean of the differences of its two arms to the best: this is twice the regret
    of the duel. An arm whose difference is unknown adds nothing to the estimate.
    """
    shown = 0.5 * (standing.plays.sum(axis=0) + standing.plays.sum(axis=1))
    value = lower = upper = 0.0
    for arm, n in enumerate(shown.tolist()):
        if arm == standing.leader:
            continue
        one = gap[arm] or Range(0.0, -1.0, 1.0)
        value, lower, upper = value + n * one.value, lower + n * one.lower, upper + n * one.upper
    return Range(max(value, 0.0), max(lower, 0.0), max(upper, 0.0))


def _days_left(standing: LiveStanding) -> list[float] | None:
    left, gap = standing.duels_left, standing.seconds_per_duel
    if left is None or gap is None or standing.status != "running":
        return None
    return [left.low * gap / DAY, left.high * gap / DAY]


def _arms(
    standing: LiveStanding, gap: Sequence[Range | None] | None, is_known: bool
) -> list[ArmSummary]:
    assert standing.wins is not None
    answers, wins = count_answers(standing), standing.wins.sum(axis=1)
    chances = standing.chances if is_known else None
    return [
        ArmSummary(
            arm=name,
            answers=round(float(answers[arm])),
            wins=float(wins[arm]),
            share=float(wins[arm] / answers[arm]) if answers[arm] else None,
            chance=None if chances is None or not standing.present[arm] else float(chances[arm]),
            ahead=None if gap is None else gap[arm],
        )
        for arm, name in enumerate(standing.arms)
    ]


# Words.


def percent(share: float) -> str:
    """Return a chance in percent; it is never 0 or 100 %.

    >>> percent(0.374), percent(1.0), percent(0.0)
    ('37 %', 'over 99 %', 'under 1 %')
    """
    if share < 0.01:
        return "under 1 %"
    return "over 99 %" if share > 0.99 else f"{100 * share:.0f} %"


def of_100(share: float) -> str:
    """Return a share of visitors.

    >>> of_100(0.123), of_100(0.0034), of_100(0.00001)
    ('12 of 100', '0.3 of 100', 'under 0.1 of 100')
    """
    n = 100 * share
    if n < 0.1:
        return "under 0.1 of 100"
    return f"{n:.1f} of 100" if n < 0.95 else f"{n:.0f} of 100"


def _headline(standing: LiveStanding, state: State) -> str:
    name = standing.arms[standing.leader]
    if standing.chosen is not None and state != "off":
        if state == "winner" and standing.chosen == name:
            return f"{name} wins, and is shown to everybody"
        return f"Finished: {standing.chosen} is shown to everybody"
    if state == "winner":
        return f"{name} wins"
    if state == "good_enough":
        return f"{name} is good enough"
    if state == "equivalent":
        return f"No difference that matters: {listed([name, *_alike(standing)], 'or')} will do"
    if state == "undecided":
        return f"Undecided: {name} is the best guess"
    if state == "leads":
        return f"{name} leads, and it is not yet sure"
    if state == "close":
        return f"{_close_words(standing)} are close"
    if state == "no_winner":
        return "No arm beats all others"
    if state == "off":
        return f"{name} was declared, but something is off" * (standing.winner is not None) or (
            "Something is off: do not decide yet"
        )
    return "Too early to say" if state == "too_early" else "No answers yet"


def _alike(standing: LiveStanding) -> list[str]:
    """Return the other arms that the verdict does not tell from the best one."""
    assert standing.evidence is not None
    beats = standing.evidence.beats[standing.leader]
    return [name for arm, name in enumerate(standing.arms)
            if standing.present[arm] and arm != standing.leader and not beats[arm]]  # fmt: skip


def _close_words(standing: LiveStanding) -> str:
    """Return the names of the arms that may be the best; the leader comes first."""
    chances, best = standing.chances, standing.leader
    order = np.argsort(-np.where(standing.present, chances, -1.0), kind="stable").tolist()
    near = [best, *(arm for arm in order if arm != best and chances[arm] >= _MIN_CHANCE_OF_RIVAL)]
    near = near if len(near) > 1 else [*near, _rival(standing, best)]
    names = [standing.arms[arm] for arm in near[:_MAX_CLOSE] if arm is not None]
    more = [f"{len(near) - _MAX_CLOSE} more"] if len(near) > _MAX_CLOSE else []
    return listed([*names, *more]) if len(names) > 1 else "All arms"


def _doubt_words(doubts: Sequence[str]) -> list[str]:
    return [f"{words.removesuffix('.')}." for words in doubts]


def _early_words(standing: LiveStanding) -> str:
    if not standing.is_heard:
        has_none = f"No answer has come to {_many(standing.tick, 'duel')}."
        return has_none if standing.tick else "No duel has been asked."
    answers = np.where(standing.candidates & standing.present, count_answers(standing), np.inf)
    fewest = int(answers.argmin())
    n = _many(round(float(answers[fewest])), "answer")
    return f"{standing.arms[fewest]} has {n}: each arm needs {MIN_ANSWERS}."


def _difference_words(one: Difference) -> str:
    """Return the difference in a sentence.

    >>> _difference_words(Difference("green", "red", 0.12, 0.031, 0.21, 0.95))
    'Of 100 visitors, about 12 more choose green than red (between 3 and 21).'
    >>> _difference_words(Difference("green", "red", 0.02, -0.04, 0.08, 0.95))
    'Of 100 visitors, about 2 more choose green than red (between 4 fewer and 8 more).'
    >>> _difference_words(Difference("green", "red", -0.02, -0.04, 0.08, 0.95))
    'Of 100 visitors, about 2 fewer choose green than red (between 4 fewer and 8 more).'
    """
    return (
        f"Of 100 visitors, about {more_or_fewer(one.value)} choose {one.arm} than {one.rival} "
        f"({between(one.lower, one.upper)})."
    )


def more_or_fewer(share: float) -> str:
    """Return a difference of shares, as visitors of 100.

    >>> more_or_fewer(0.123), more_or_fewer(-0.004)
    ('12 more', '0.4 fewer')
    """
    return f"{_visitors(share)} {'more' if share >= 0 else 'fewer'}"


def between(lower: float, upper: float) -> str:
    """Return the ends of an interval of differences, as visitors of 100.

    >>> between(0.031, 0.21), between(-0.04, 0.08), between(-0.3, -0.1)
    ('between 3 and 21', 'between 4 fewer and 8 more', 'between 30 and 10 fewer')
    """
    if lower >= 0:
        return f"between {_visitors(lower)} and {_visitors(upper)}"
    if upper <= 0:
        return f"between {_visitors(lower)} and {_visitors(upper)} fewer"
    return f"between {more_or_fewer(lower)} and {more_or_fewer(upper)}"


def _visitors(share: float) -> str:
    n = abs(100 * share)
    return f"{n:.1f}".removesuffix(".0") if n < 0.95 else f"{n:.0f}"


def _cost_words(cost: Range, duels: int) -> str:
    return (
        f"Cost of the test so far: about {cost.value:,.0f} lost choices in {_many(duels, 'duel')} "
        f"(between {cost.lower:,.0f} and {cost.upper:,.0f})."
    )


def _time_words(standing: LiveStanding, days: list[float] | None) -> str:
    if standing.status == "finished":
        return ""
    if standing.status == "paused":
        return "the experiment is paused"
    if days is not None and (left := standing.duels_left) is not None:
        return time_left(left, standing.seconds_per_duel) or "the open duels may be enough"
    if standing.seconds_per_duel is None:
        return "no duels have been asked lately"
    return "too early to say"


def _many(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
