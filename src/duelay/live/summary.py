"""The summary of a live experiment: the numbers that a manager asks for, and sentences on them.

The service sends it as JSON, the page and `duelay standing` show it, and a picture is made of it.
Differences are shares of visitors: 0.12 says that of 100 visitors who see both arms, 12 more choose
the one than the other. An arm that wins a share mu of its duels has a difference of 2 mu - 1. Where
one arm is shown at a time they are lifts: 0.12 says that the conversion rate of the one is 12 %
higher than that of the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from duelay._core.records import read_record
from duelay.inference.alarms import REMARKS
from duelay.inference.rates import lift_of
from duelay.inference.verdicts import listed
from duelay.live.arrivals import DAY, time_left

if TYPE_CHECKING:
    from duelay.live.standing import LiveStanding

MIN_ANSWERS = 20  # of each arm that may still win, before an arm is said to lead
_MIN_CHANCE = 0.8  # of being the best, from which an arm leads; below it, arms are close
_MIN_CHANCE_OF_RIVAL = 0.1  # an arm with less is not named among those that are close
_MIN_CHANCE_TO_TELL = 0.01  # arms with less are told apart by how much better the best one is
_MAX_CLOSE = 3  # arms that are named
_VERDICTS = ("winner", "good_enough", "equivalent")  # of the evidence, with its guarantee
_ENDS = (*_VERDICTS, "undecided", "no_winner", "off")
ALIKE = ("close", "equivalent")  # no arm is said to be better
_KNOWN = ("close", "leads", "undecided", *_VERDICTS)  # an arm is best, as far as can be told

_HEADLINES = {  # by state, with the name of the arm that leads
    "no_answers": "No answers yet",
    "too_early": "Too early to say",
    "leads": "{} leads, and it is not yet sure",
    "no_winner": "No arm beats all others",
    "winner": "{} wins",
    "good_enough": "{} is good enough",
    "undecided": "Undecided: {} is the best guess",
}

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
    upper: float | None  # None if it has no end


@dataclass(frozen=True)
class Difference:
    """How much better an arm is than its strongest rival."""

    measure: Literal["visitors", "lift"]  # a share of visitors; or a lift, for one arm at a time
    arm: str
    rival: str
    value: float
    lower: float
    upper: float | None  # None if it has no end
    confidence: float  # with which the interval, and the verdict if there is one, hold at all looks

    is_stated: bool = True  # False for a lift that may as well be the other way round

    @property
    def amount(self) -> str:
        """The difference in a few words: "12 more", of 100 visitors, or "12 % higher"."""
        return more_or_fewer(self.value) if self.measure == "visitors" else _higher(self.value)

    @property
    def ends(self) -> str:
        """The ends of the interval in a few words."""
        if self.measure == "visitors":
            return between(self.lower, 1.0 if self.upper is None else self.upper)
        return _between_lifts(self.lower, self.upper)


@dataclass(frozen=True)
class ArmSummary:
    """What is known of an arm."""

    arm: str
    answers: int  # to duels with the arm, whoever won
    wins: float  # of these answers; a tie is half a win
    share: float | None  # of the answers that are wins; None without answers
    chance: float | None  # of being the best: an opinion, without a guarantee
    ahead: Range | None  # how much better the best arm is than this one, as `Difference`
    rate: Range | None  # of conversion, within the window, where one arm is shown at a time
    shown: int | None  # the visitors that it is of


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
    # Visitors so far who would have chosen `best`, less those who would not; or lost conversions.
    cost: Range | None
    days_left: list[float] | None  # low and high, at this traffic: an opinion
    time_left: str  # the same in words, or why it is not known; empty where nothing is left
    lacks: str  # what is needed before an arm is said to lead; empty if nothing is
    doubts: list[str]  # why the numbers may be wrong: alarms of the tests of assumptions
    arms: list[ArmSummary]
    harms: list[str] = field(default_factory=list)  # arms that a guard-rail alarms about

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Summary:
        """Return the summary that a service has sent; fields of later versions are left out."""
        return read_record(cls, found)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON has them."""
        return asdict(self)

    @property
    def shows_one(self) -> bool:
        """Whether one arm is shown at a time: differences are lifts, and costs conversions."""
        return any(arm.shown is not None for arm in self.arms)

    @property
    def loss_words(self) -> str:
        """The expected loss in a few words; empty where it is not known."""
        if self.expected_loss is None:
            return ""
        return _loss_words(self.expected_loss, self.shows_one)

    @property
    def cost_unit(self) -> str:
        """What the cost counts."""
        return "lost conversions" if self.shows_one else "lost choices"

    @property
    def text(self) -> str:
        """The summary as lines of text, to be copied."""
        return "\n".join([self.headline, *(f"- {words}" for words in self.sentences)])


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
        difference = Difference(
            "visitors" if standing.rates is None else "lift", standing.arms[best],
            standing.arms[rival], found.value, found.lower, found.upper, _confidence(standing),
            # The rates of all visitors may be in the other order: these are of other visitors.
            is_stated=standing.rates is None or state not in ALIKE or found.lower >= 0.0,
        )  # fmt: skip
    chance = float(standing.chances[best]) if is_known else None
    shows_one = standing.rates is not None
    loss = None
    if is_known:
        loss = float(lift_of(0.5 + standing.loss)) if shows_one else 2.0 * standing.loss
    cost = None if gap is None else _cost(standing, gap)
    days = _days_left(standing) if state in ("close", "leads") else None
    headline = _headline(standing, state)
    name = standing.arms[best]
    sentences = _doubt_words(doubts)
    if doubts and (shown := shown_to_all(standing)):
        sentences.append(shown)
    lacks = _early_words(standing) if state in ("no_answers", "too_early") else ""
    if state == "off":
        lacks = "Numbers for a decision are left out until this is mended."
    sentences += [lacks] if lacks else []
    harms = standing.harms
    sentences += [f"Guard-rail, {words}." for words in harms]
    # While an A/B test runs, the lift says how far arms differ, and one number for it is enough.
    has_words = state in ("good_enough", "equivalent", "undecided")
    if has_words or (state in ("close", "leads") and not shows_one):
        said = standing.verdict_words
        is_name = any(said.startswith(arm) for arm in standing.arms)
        sentences += [f"{said if is_name else said[:1].upper() + said[1:]}."] if said else []
    if difference is not None:
        sentences.append(difference_words(difference))
    if chance is not None and state in ("close", "leads"):
        sentences.append(f"The chance that {name} is the best: {percent(chance)}.")
    if loss is not None and state not in ("winner", "equivalent"):
        sentences.append(
            f"Expected loss if you stop now and show {name} to everybody: "
            f"{_loss_words(loss, shows_one)}."
        )
    if cost is not None:
        sentences.append(_cost_words(cost, standing.tick, shows_one))
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
        harms=list(harms),
        arms=_arms(standing, gap, is_known),
    )


# Numbers.


def count_answers(standing: LiveStanding) -> NDArray[np.float64]:
    """(K,): the answers that count, to duels with each arm and another one.

    Where one arm is shown at a time, these are its own conversions.
    """
    assert standing.wins is not None
    if standing.rates is not None:
        return np.asarray(standing.wins.sum(axis=1))
    return np.asarray(standing.wins.sum(axis=0) + standing.wins.sum(axis=1))


def is_early(standing: LiveStanding) -> bool:
    """Whether an arm that may still win has too few answers to say who leads."""
    if standing.is_sure:
        return False
    may_win = standing.candidates & standing.present
    return bool((count_answers(standing)[may_win] < MIN_ANSWERS).any())


def shown_to_all(standing: LiveStanding) -> str:
    """Return the verdict and the arm that everybody is shown, of an experiment with doubts."""
    if standing.chosen is not None:
        return f"Finished: {standing.chosen} is shown to all visitors."
    if standing.verdict == "running":
        return ""
    return (
        f"Nevertheless, all visitors are shown {standing.choice}, because of this verdict: "
        f"{standing.verdict_words}."
    )


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
    """Return how much better the best arm is than each arm; None where nobody knows.

    The interval agrees with the verdict: a winner is not chosen less often than another arm.
    """
    found: list[Range | None] = []
    floor, ceiling = _ends_of_verdict(standing)
    for arm in range(len(standing.arms)):
        mean, lower, upper = (
            float(values[best, arm]) for values in (standing.mean, standing.lower, standing.upper)
        )
        if arm == best or not all(map(math.isfinite, (mean, lower, upper))):
            found.append(None)
            continue
        if standing.present[arm]:
            lower = max(lower, floor)
            upper = max(upper if lower > ceiling else min(upper, ceiling), lower)
        lower, upper = max(lower, 0.0), min(upper, 1.0)
        mean = min(max(mean, lower), upper)
        if standing.rates is None:
            found.append(Range(2.0 * mean - 1.0, 2.0 * lower - 1.0, 2.0 * upper - 1.0))
        elif mean < 1.0:
            value, low, high = (float(lift_of(mu)) for mu in (mean, lower, upper))
            found.append(Range(value, low, high if math.isfinite(high) else None))
        else:
            found.append(None)  # the other arm has no conversion
    return found


def _ends_of_verdict(standing: LiveStanding) -> tuple[float, float]:
    """Return the least and the largest share of wins of the best arm that the verdict leaves."""
    if standing.winner is not None:
        return 0.5, 1.0
    margin = None if standing.evidence is None else standing.evidence.margin
    if margin is None or standing.verdict not in ("good_enough", "equivalent"):
        return 0.0, 1.0
    return 0.5 - margin, 0.5 + margin if standing.verdict == "equivalent" else 1.0


def _confidence(standing: LiveStanding) -> float:
    """Return the probability with which all intervals hold, and the verdict if there is one.

    Intervals and verdict may each be wrong; they are made by different evidence.
    """
    lost = 1.0 - standing.confidence + (standing.error if standing.verdict in _VERDICTS else 0.0)
    return max(1.0 - lost, 0.0)


def _rival(standing: LiveStanding, best: int) -> int | None:
    """Return the arm that is most likely to be better than the best; None if none has answers.

    Of arms that have next to no chance, it is the one that comes nearest.
    """
    mean = standing.mean[best]
    chances = np.where(standing.chances < _MIN_CHANCE_TO_TELL, 0.0, standing.chances)
    known = [arm for arm in range(len(standing.arms))
             if arm != best and standing.present[arm] and math.isfinite(mean[arm])]  # fmt: skip
    return min(known, key=lambda arm: (-chances[arm], mean[arm], arm), default=None)


def _cost(standing: LiveStanding, gap: Sequence[Range | None]) -> Range | None:
    """Return what the duels so far have cost, against showing the best arm alone.

    A duel costs the mean of the differences of its two arms to the best: this is twice the regret
    of the duel. An arm whose difference is unknown adds nothing to the estimate. Where one arm is
    shown at a time, an arm with n conversions would have had n times its lift more.
    """
    shown = 0.5 * (standing.plays.sum(axis=0) + standing.plays.sum(axis=1))
    unknown = Range(0.0, -1.0, 1.0)
    if standing.rates is not None:
        if not any(gap):
            return None  # all that could be said is "at least 0"
        shown, unknown = standing.rates.conversions, Range(0.0, -1.0, None)
    value = lower = upper = 0.0
    for arm, n in enumerate(shown.tolist()):
        if arm == standing.leader or n == 0:
            continue
        one = gap[arm] or unknown
        value, lower = value + n * one.value, lower + n * one.lower
        upper += n * (math.inf if one.upper is None else one.upper)
    upper = max(upper, 0.0)
    return Range(max(value, 0.0), max(lower, 0.0), upper if math.isfinite(upper) else None)


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
    rates = standing.rates
    chances = standing.chances if is_known else None
    return [
        ArmSummary(
            arm=name,
            answers=round(float(answers[arm])),
            wins=float(wins[arm]),
            share=float(wins[arm] / answers[arm]) if answers[arm] and rates is None else None,
            chance=None if chances is None or not standing.present[arm] else float(chances[arm]),
            ahead=None if gap is None else gap[arm],
            rate=None
            if rates is None or not rates.closed[arm]
            else Range(float(rates.rate[arm]), float(rates.lower[arm]), float(rates.upper[arm])),
            shown=None if rates is None else int(rates.closed[arm]),
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
        if state == "equivalent":
            return f"No difference that matters: {standing.chosen} is shown to everybody"
        return f"Finished: {standing.chosen} is shown to everybody"
    if state == "equivalent":
        return f"No difference that matters: {listed([name, *_alike(standing)], 'or')} will do"
    if state == "close":
        return f"{_close_words(standing)} are close"
    if state == "no_answers" and standing.rates is not None:
        return "No conversions yet"
    if state != "off":
        return _HEADLINES[state].format(name)
    if standing.winner is not None:
        return f"{name} was declared, but something is off"
    if standing.verdict != "running":
        return "It has ended, but something is off"
    return "Something is off: do not decide yet"


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
        if standing.rates is not None:
            has_none = f"None of {_many(standing.tick, 'visitor')} has converted yet."
            return has_none if standing.tick else "No visitor has come yet."
        has_none = f"No answer has come to {_many(standing.tick, 'duel')}."
        return has_none if standing.tick else "No duel has been asked."
    answers = np.where(standing.candidates & standing.present, count_answers(standing), np.inf)
    fewest = int(answers.argmin())
    n = _many(round(float(answers[fewest])), "answer" if standing.rates is None else "conversion")
    return f"{standing.arms[fewest]} has {n}: each arm needs {MIN_ANSWERS}."


def difference_words(one: Difference) -> str:
    """Return the difference in a sentence.

    >>> difference_words(Difference("visitors", "green", "red", 0.12, 0.031, 0.21, 0.95))
    'Of 100 visitors, about 12 more choose green than red (between 3 and 21).'
    >>> difference_words(Difference("lift", "green", "red", 0.12, 0.031, None, 0.95))
    'The conversion rate of green is about 12 % higher than that of red (from 3 % higher on).'
    >>> difference_words(Difference("lift", "green", "red", 0.1, -0.2, 0.4, 0.95, is_stated=False))
    'The conversion rate of green may be from 20 % lower to 40 % higher than that of red.'
    """
    if not one.is_stated:
        ends = one.ends.replace("between ", "from ").replace(" and ", " to ")
        return f"The conversion rate of {one.arm} may be {ends} than that of {one.rival}."
    if one.measure == "visitors":
        said = f"Of 100 visitors, about {one.amount} choose {one.arm} than {one.rival}"
    else:
        said = f"The conversion rate of {one.arm} is about {one.amount} than that of {one.rival}"
    return f"{said} ({one.ends})."


def _higher(lift: float) -> str:
    """Return a lift in a few words.

    >>> _higher(0.123), _higher(-0.004)
    ('12 % higher', '0.4 % lower')
    """
    return f"{_visitors(lift)} % {'higher' if lift >= 0 else 'lower'}"


def _between_lifts(lower: float, upper: float | None) -> str:
    """Return the ends of an interval of lifts.

    >>> _between_lifts(0.031, 0.21), _between_lifts(-0.04, 0.08), _between_lifts(0.03, None)
    ('between 3 and 21 % higher', 'between 4 % lower and 8 % higher', 'from 3 % higher on')
    >>> _between_lifts(0.031, 15.1)
    'between 3 and 1,510 % higher'
    """
    if upper is None:
        return f"from {_higher(lower)} on"
    if lower < 0 < upper:
        return f"between {_higher(lower)} and {_higher(upper)}"
    return f"between {_visitors(lower)} and {_higher(upper)}"


def _loss_words(loss: float, shows_one: bool) -> str:
    if not shows_one:
        return f"{of_100(loss)} visitors"
    return "under 0.1 % of conversions" if loss < 0.001 else f"{_visitors(loss)} % of conversions"


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
    return f"{n:.1f}".removesuffix(".0") if n < 0.95 else f"{n:,.0f}"


def _cost_words(cost: Range, duels: int, shows_one: bool) -> str:
    lost = _many(round(cost.value), "lost conversion" if shows_one else "lost choice")
    of = _many(duels, "visitor" if shows_one else "duel")
    return f"Cost of the test so far: about {lost} in {of} ({cost_ends(cost)})."


def cost_ends(cost: Range) -> str:
    """Return the ends of the interval of a cost.

    >>> cost_ends(Range(7.0, 2.0, 1900.0)), cost_ends(Range(7.0, 2.0, None))
    ('between 2 and 1,900', 'at least 2')
    """
    if cost.upper is None:
        return f"at least {cost.lower:,.0f}"
    return f"between {cost.lower:,.0f} and {cost.upper:,.0f}"


def _time_words(standing: LiveStanding, days: list[float] | None) -> str:
    if standing.status == "finished":
        return ""
    if standing.status == "paused":
        return "the experiment is paused"
    units = "duels" if standing.rates is None else "visitors"
    if days is not None and (left := standing.duels_left) is not None:
        return time_left(left, standing.seconds_per_duel) or f"the open {units} may be enough"
    if standing.seconds_per_duel is None:
        return f"no {units} have {'come' if standing.rates is not None else 'been asked'} lately"
    return "too early to say"


def _many(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
