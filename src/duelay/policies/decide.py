"""Decide: duel where evidence is missing until the ledger's e-processes declare a winner.

The leader is the arm with the least evidence against it: the sum of N d(mu^, 1/2) over the
opponents that seem to beat it, as in RMED. Its rival is the opponent with the least 2 N g^2 among
those that it has not passed yet. 2 N g^2 is the expected log evidence of N duels with gap g. N
includes open duels, each weighted by the information that it is expected to give. The gap g is
drawn from its posterior, so that near ties are also compared. Leader and rival depend on settled
duels and on the number of open duels, never on the order of an open duel.

With a margin, the leader is the arm that lacks the least evidence of being good enough
(`duelay.ledger.evidence.margin`), and its rival the one with the fewest duels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from duelay._core import checks
from duelay._core.duration import Duration, is_duration
from duelay._core.feedback import DISPLAYS
from duelay._core.jit.decorators import kernel
from duelay.delays.delay import Delay, check_delay
from duelay.delays.ticks_or_clock import WAYS, in_ticks, in_time, is_in_time, refuse_time
from duelay.errors import InvalidValueError
from duelay.ledger.delay_models.base import FOREVER
from duelay.ledger.evidence.eprocess import start_eprocess
from duelay.ledger.evidence.margin import ENDS, is_done, missing_to_tie
from duelay.ledger.evidence.silence import worth
from duelay.ledger.evidence.winner_threshold import NOBODY, is_passed
from duelay.ledger.ledger import Ledger, open_ledger
from duelay.policies.policy import CompiledPolicy
from duelay.policies.turn import calm_until, declared, select
from duelay.text import named


@named("policy", "decide")
@dataclass(frozen=True, kw_only=True)
class Decide(CompiledPolicy):
    """Find the winner in few duels and declare it, without knowledge of the delays.

    The probability that it declares a wrong winner, or one where there is none, is at most `error`,
    at any number of looks. That holds for any delay distribution, including answers that never
    come, provided that the delay does not depend on which arm won, the two arms are shown in the
    order asked, and different duels are answered independently (docs/theory.md). It does not save
    regret until the winner is declared; afterwards the winner duels itself.

    Parameters
    ----------
    delay : Law, ByPair or str, optional
        The law, if it is known; by the clock, in time. It then takes fewer duels the longer the
        delays are, and the guarantee rests on the law being right. None, the default, rests on
        nothing of the kind.
    order : str
        ``"coin"``, and nothing else: the guarantee rests on it, unless a law is told.
    window : int or Duration, optional
        Ticks after which a conversion is no longer counted; None for no limit.
    error : float
        The probability that it may err with, 0.05 by default.
    winner_exists : bool
        Whether to take for granted that one arm beats all others (a Condorcet winner). It then
        takes fewer duels; where there is none, it still names one.
    self_duels : bool
        Whether the two arms of a duel may be the same; see `DoubleThompson`.
    wait : int or Duration, optional
        How long an answer may take to count as evidence, until `Decide` knows the delays from ten
        conversions: a number of ticks, or a duration by the clock. Without it, duels that are asked
        before then choose pairs but are no evidence. State it where many duels are asked before
        anything is heard.
    margin : float, optional
        Epsilon, the smallest difference from 1/2 that matters, such as 0.05. The experiment then
        also ends when no difference matters. None, the default, for no such end.
    end : str
        With a margin, what ends the experiment if no arm wins: ``"equivalent"``, once an arm is
        shown to differ by less than the margin from every arm that it is not known to beat; or
        ``"good_enough"``, once no arm beats it by the margin or more, which takes fewer duels.
    display : str
        ``"pair"``, where the two arms of a duel are shown together; or ``"one"``, an A/B test: the
        first arm is shown alone, and a conversion is told when the visitor converts. Arms are then
        compared by their conversion rates. As rates are ordered, it takes fewer duels.
    planned : float, optional
        The difference from 1/2 that the experiment is planned for, in the units of `margin`; a
        lift l of conversion rates is l / (2 (2 + l)). Such a difference then takes fewer duels,
        and very different ones take more. Whatever it is, the guarantee holds. None, the default,
        for the margin where one arm is shown at a time, and else for differences of all sizes.

    Examples
    --------
    >>> player = Decide(error=0.1).start(["red", "green"], seed=0)
    >>> while player.standing().winner is None:
    ...     duel = player.ask()
    ...     if duel.first == 1:  # green wins whenever it is shown first
    ...         _ = player.tell(duel)
    >>> player.arms[player.standing().winner]
    'green'
    """

    is_shared: ClassVar[bool] = True
    delay: Delay | str | None = None
    order: str = "coin"
    window: int | Duration | None = None
    error: float = 0.05
    winner_exists: bool = False
    self_duels: bool = True
    wait: int | Duration | None = None
    margin: float | None = None
    end: str = "equivalent"
    display: str = "pair"
    planned: float | None = None

    def __post_init__(self) -> None:
        if self.delay is not None:
            object.__setattr__(self, "delay", self._known_law())
        if self.order != "coin":
            raise InvalidValueError(
                "order must be 'coin' for a policy that decides: its guarantee rests on the coin, "
                f"unless a law is told, and the coin does no harm there, got {self.order!r}"
            )
        object.__setattr__(self, "window", checks.window(self.window))
        object.__setattr__(self, "error", checks.number("error", self.error, above=0, below=1))
        checks.yes_or_no("winner_exists", self.winner_exists)
        checks.yes_or_no("self_duels", self.self_duels)
        if self.wait is not None:
            object.__setattr__(self, "wait", self._first_wait())
        checks.one_of("end", self.end, ENDS)
        if self.margin is None and self.end != "equivalent":
            raise InvalidValueError(
                f"end={self.end!r} requires a margin, the smallest difference that matters",
                argument="end",
            )
        if self.margin is not None:
            object.__setattr__(self, "margin", self._margin())
        checks.one_of("display", self.display, DISPLAYS)
        if self.planned is not None:
            planned = checks.number("planned", self.planned, above=0, below=0.5)
            object.__setattr__(self, "planned", planned)

    def _known_law(self) -> Delay:
        if self.delay in WAYS:
            raise InvalidValueError(
                f"delay must be None or a law for a policy that decides: it need not learn it, got "
                f"{self.delay!r}"
            )
        if self.display == "one":
            raise InvalidValueError(
                "delay must be left out where one arm is shown at a time: silence then depends on "
                f"the conversion rates, too, got {self.delay}"
            )
        return check_delay(self.delay)

    def _first_wait(self) -> int | Duration:
        if self.delay is not None:
            raise InvalidValueError(
                "wait must be left out where a law is told, which says how long to wait, got "
                f"{self.wait!r}"
            )
        if is_duration(self.wait):
            return checks.duration("wait", self.wait)
        return checks.whole("wait", self.wait, least=1)

    def _margin(self) -> float:
        if self.delay is not None or self.winner_exists:
            raise InvalidValueError(
                "margin must be left out where a law is told or a winner is taken for granted, got "
                f"{self.margin!r}"
            )
        return checks.number("margin", self.margin, above=0, below=0.5)

    def ledger(self, n_arms: int, *, by_clock: bool = False) -> Ledger:
        """Return an empty ledger that bets."""
        law = None if self.delay is None else check_delay(self.delay, n_arms)
        if not by_clock:
            refuse_time("wait", self.wait)
        elif self.wait is not None and not is_in_time(self.wait):
            raise InvalidValueError(
                f"wait {self.wait} is in ticks, and there is a clock: write a duration, such as "
                "wait='2h'"
            )
        eprocess = start_eprocess(
            self.error,
            in_time(self) if by_clock else in_ticks(self.window),
            n_arms,
            winner_exists=self.winner_exists,
            delay=law,
            by_clock=by_clock,
            first_wait=self.wait,
            margin=self.margin,
            end=self.end,
            shows_one=self.display == "one",
            planned=find_planned(self),
        )
        return open_ledger(eprocess, n_arms, self.order, self_duels=self.self_duels)

    def rule(self, n_arms: int) -> DecideRule:
        """Return the rule that asks where evidence is missing."""
        return DecideRule(0)


def find_planned(policy: Decide) -> float | None:
    """Return the gap on which the bets of a policy are centred; None for gaps of all sizes."""
    return policy.margin if policy.planned is None and policy.display == "one" else policy.planned


class DecideRule(NamedTuple):
    """Nothing: all is in the ledger."""

    unused: int  # a record needs a field


@select.register(DecideRule)
def _select(rule: DecideRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    eprocess = ledger.assumed
    if eprocess.winner[0] != NOBODY:
        return eprocess.winner[0], eprocess.winner[0]
    if eprocess.margin > 0.0:
        leader = find_near_leader(eprocess, rng)
        return leader, find_near_rival(eprocess, ledger.plays, leader, rng)
    leader = find_leader(eprocess, rng)
    return leader, find_rival(eprocess, leader, rng)


@kernel
def find_near_leader(eprocess: Any, rng: np.random.Generator) -> int:
    """Return the arm that lacks the least evidence of being good enough; of several, any."""
    leader, least, n_ties = 0, math.inf, 0
    for i in range(eprocess.doubts.size):
        if not eprocess.present[i]:
            continue
        missing = missing_to_tie(eprocess, i)
        if missing < least:
            leader, least, n_ties = i, missing, 1
        elif missing == least:
            n_ties += 1
            if rng.random() * n_ties < 1.0:
                leader = i
    return leader


@kernel
def find_near_rival(eprocess: Any, plays: Any, leader: int, rng: np.random.Generator) -> int:
    """Return, of the opponents that are not done, the one with the fewest duels."""
    rival, fewest, n_ties = leader, FOREVER, 0
    for j in range(eprocess.doubts.size):
        if j == leader or not eprocess.present[j]:
            continue
        if rival == leader:
            rival = j  # where all are done
        n = plays[leader, j] + plays[j, leader]
        if is_done(eprocess, leader, j) or n > fewest:
            continue
        n_ties = 1 if n < fewest else n_ties + 1
        fewest = n
        if n_ties == 1 or rng.random() * n_ties < 1.0:
            rival = j
    return rival


@kernel
def find_leader(eprocess: Any, rng: np.random.Generator) -> int:
    """Return the arm with the least doubts; of several, any."""
    leader, least, n_ties = 0, math.inf, 0
    for i in range(eprocess.doubts.size):
        doubts = eprocess.doubts[i]
        if not eprocess.present[i]:
            continue
        if doubts < least:
            leader, least, n_ties = i, doubts, 1
        elif doubts == least:
            n_ties += 1
            if rng.random() * n_ties < 1.0:
                leader = i
    return leader


@kernel
def find_rival(eprocess: Any, leader: int, rng: np.random.Generator) -> int:
    """Return, of the opponents not passed yet, the one with the least 2 N g^2."""
    rival, least, n_ties = leader, math.inf, 0
    each = worth(eprocess)
    for j in range(eprocess.doubts.size):
        if j == leader or not eprocess.present[j]:
            continue
        if rival == leader:
            rival = j  # where all are passed
        if is_passed(eprocess, leader, j):
            continue
        n, still_open = eprocess.n[leader, j], each * eprocess.n_open[leader, j]
        cost = still_open - 1.0  # before anything is heard: the rival with the fewest open duels
        if n > 0.0:
            gap = 0.5 * eprocess.lead[leader, j] / n + 0.5 * rng.standard_normal() / math.sqrt(n)
            cost = 2.0 * (n + still_open) * max(gap, 0.0) ** 2
        if cost < least:
            rival, least, n_ties = j, cost, 1
        elif cost == least:
            n_ties += 1
            if rng.random() * n_ties < 1.0:
                rival = j
    return rival


@declared.register(DecideRule)
def _declared(rule: DecideRule, ledger: Ledger) -> Any:
    return ledger.assumed.winner[0]


@calm_until.register(DecideRule)
def _calm_until(rule: DecideRule, ledger: Ledger, arm: int, t: int) -> int:
    """A declared winner stays declared."""
    return FOREVER if ledger.assumed.winner[0] != NOBODY else t
