"""Maillard sampling on any ledger: arms challenge the leader by the evidence against them.

The belief about a pair is normal, and begins as a ranking with exceptions:

    mu_ij - 1/2 = theta_i - theta_j + e_ij,    theta ~ N(0, spread^2),    e ~ N(0, noise^2).

The strengths theta are those of the mean field: each has the variance that it would have if the
others were known, and a sweep brings the means up to date whenever there is news. A pair's own
evidence is mu^_ij with the precision 4 n_ij, where n = N~ / (2 - N~ / N) is what the duels tell:
half of N~ where hardly anything is answered, all of it where everything is. The larger n is, the
less the ranking counts.

A ratio z_ij is mean over deviation of mu_ij - 1/2. The ranking may lower it by `beyond` at most,
compared with what the pair's own duels say: bad luck against many arms would add up in it. For the
same reason the evidence against arm i is not a sum, but that of the one arm that beats it most
surely:

    D_i = -log min(1, 2 Phi(min over j of z_ij)).

The leader has the least D, the runner-up the least but one. Arm i challenges the leader with the
chance p_i / p_leader, where

    p_i = exp(-D_i) / (1 + D_i),    for the runner-up p_i = exp(-D_i).

Where these chances add up to more than 1 they are scaled to 1. Without a challenger the leader
duels itself. If the leader is wrong, the winner is mostly the runner-up, and comes back sooner; if
it is right, the runner-up is mostly an arm whose duels cost little.

Since chances are explicit, an exponential clock says when the next challenger comes. It runs down
by -log(1 - chance) a turn, however the chance changes. Until it has run down, nothing is drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit.decorators import kernel
from duelay.delays.delay import Delay
from duelay.ledger.delay_models.base import FOREVER, epoch, final_age, is_deaf, pair_counts
from duelay.ledger.ledger import Estimates, Ledger
from duelay.policies.pair_statistics import least_asked
from duelay.policies.policy import AnyLedgerPolicy
from duelay.policies.turn import calm_until, pass_over, select
from duelay.text import named

SPREAD, NOISE, BEYOND = 0.15, 0.1, 0.5  # tuned on generated problems (benchmarks/tenth.py)


@named("policy", "maillard")
@dataclass(frozen=True, kw_only=True)
class MaillardSampling(AnyLedgerPolicy):
    """Maillard sampling: arms challenge the leader with probabilities by the evidence against them.

    D_i says how surely arm i is beaten. Let j be the arm that beats i most surely: D_i is -log of
    twice the chance that i beats j. The arm with the least D leads. Arm i challenges it with the
    chance p_i / p_leader, where p_i = exp(-D_i) / (1 + D_i), or exp(-D_i) for the runner-up.
    Without a challenger the leader duels itself. The belief about a pair begins as a ranking with
    exceptions; the pair's own duels override it.

    **The risk.** On the six datasets under five laws, and on hard problems (34 cells, 33,040 runs),
    its mean regret is three quarters of that of what `recommend` gives, and its 99th percentile is
    lower, too. But 56 runs had more than four times the other's mean, up to 162 times, against 22
    runs: a winner that was unlucky early is asked again only after some exp(D) ticks. 4 runs on
    datasets never came back, against none. In 175 runs against none, mostly where answers are late,
    another arm than the winner beat the most others in the end, as clear losers are asked little:
    the leader of a standing is therefore the arm with the least D, as in the rule.
    docs/choosing.md has all numbers.

    Parameters
    ----------
    delay : Law, ByPair or str, optional
        The law that is assumed; ``"learn"``, the default, learns it from duels of two arms,
        by coin or in turns; None takes a silent duel for a lost one.
    order : str
        ``"coin"``, ``"alternate"`` (each pair in turns, begun by a coin) or ``"champion"`` (the
        leader first). With ``"champion"`` the law must be told: no duel of two arms teaches it.
    window : int, optional
        Ticks after which a conversion is no longer counted; None for no limit, or, where the law is
        learned, 10,000 ticks.
    self_duels : bool
        Whether the two arms of a duel may be the same; see `DoubleThompson`.

    Examples
    --------
    >>> player = MaillardSampling().start(["old", "new", "newer"], seed=0)
    >>> player.tell(player.ask())
    'counted'

    References
    ----------
    Maillard. Apprentissage séquentiel: bandits, statistique et renforcement. Thesis, Lille 2011.
    Bian, Jun. Maillard Sampling: Boltzmann Exploration Done Optimally. AISTATS 2022.
    """

    delay: Delay | str | None = "learn"
    self_duels: bool = True

    def rule(self, n_arms: int) -> MaillardRule:
        """Return the rule at its start."""
        return maillard_rule(SPREAD, NOISE, BEYOND, n_arms)

    def leads_by(self, estimates: Estimates) -> NDArray[np.float64]:
        """Return the lowest ratio of each arm: the arm with the largest one leads."""
        return lowest_ratios(estimates, SPREAD, NOISE, BEYOND)


_TICKS_BETWEEN_UPDATES = 32  # without news, where *expected* grows by itself
_ERFC_SERIES_BELOW = -25.0  # deviations: below, erfc is taken by its asymptotic series
_MAX_CHALLENGE_CHANCE = 1.0 - 1e-15  # so that the logarithm of the rest is finite


class MaillardRule(NamedTuple):
    """The belief of Maillard sampling, and the time of the next challenger."""

    spread: float  # deviation of strengths before anything is heard
    noise: float  # deviation of a pair from the ranking
    beyond: float  # deviations that the ranking may add to what a pair's own duels say
    stamp: NDArray[np.int64]  # (K, K): news of i and j when their pair was read, or -1
    rest: NDArray[np.float64]  # (K, K): how much the ranking counts, 1 / (1 + noise^2 4 n)
    pull: NDArray[np.float64]  # (K, K): 4 n rest, the pair's evidence about the two strengths ...
    lift: NDArray[np.float64]  # (K, K): ... times mu^ - 1/2
    strength: NDArray[np.float64]  # (K,): the mean of theta ...
    variance: NDArray[np.float64]  # (K,): ... and its variance
    lowest: NDArray[np.float64]  # (K,): the least of mean / deviation over the opponents
    weight: NDArray[np.float64]  # (K,): p, over the leader's
    leader: NDArray[np.int64]  # (1,): -1 before the first look
    seen_news: NDArray[np.int64]  # (1,): all arms' news at the last look, or -1
    seen_epoch: NDArray[np.int64]  # (1,): the ledger's epoch at the last look
    asked: NDArray[np.int64]  # (1,): the tick of the last challenge
    hazard: NDArray[np.float64]  # (1,): -log of the probability that no arm challenges
    clock: NDArray[np.float64]  # (1,): what was left when the hazard last changed; -1 at the start
    turns: NDArray[np.int64]  # (1,): turns since then


def maillard_rule(spread: float, noise: float, beyond: float, n_arms: int) -> MaillardRule:
    """Return the rule at its start."""
    shape = (n_arms, n_arms)
    return MaillardRule(
        spread=spread,
        noise=noise,
        beyond=beyond,
        stamp=np.full(shape, -1, dtype=np.int64),
        rest=np.ones(shape),
        pull=np.zeros(shape),
        lift=np.zeros(shape),
        strength=np.zeros(n_arms),
        variance=np.full(n_arms, spread * spread),
        lowest=np.zeros(n_arms),
        weight=np.ones(n_arms),
        leader=np.full(1, -1, dtype=np.int64),
        seen_news=np.full(1, -1, dtype=np.int64),
        seen_epoch=np.full(1, -1, dtype=np.int64),
        asked=np.zeros(1, dtype=np.int64),
        hazard=np.zeros(1),
        clock=np.full(1, -1.0),
        turns=np.zeros(1, dtype=np.int64),
    )


@kernel
def doubt(z: float) -> float:
    """-log min(1, 2 P(x > 0)), x normal with mean / deviation z."""
    if z >= 0.0:
        return 0.0
    if z > _ERFC_SERIES_BELOW:
        return -math.log(math.erfc(-z / math.sqrt(2.0)))
    square = z * z  # 2 P = sqrt(2 / pi) exp(-z^2 / 2) / |z| (1 - 1 / z^2 + ...)
    return 0.5 * square + math.log(-z) + 0.2257913526447274 - math.log1p(-1.0 / square)


@kernel
def read_pair(rule: MaillardRule, ledger: Ledger, i: int, j: int) -> None:
    """Update the belief by the duels of a pair."""
    n, n_tilde, s = pair_counts(ledger.assumed, ledger.plays, ledger.conversions, i, j)
    rest, pull, lift = 1.0, 0.0, 0.0
    if n_tilde > 0.0:
        precision = 4.0 * n_tilde / (2.0 - n_tilde / n)
        rest = 1.0 / (1.0 + rule.noise * rule.noise * precision)
        pull = precision * rest
        lift = pull * (min(max(s / n_tilde, 0.0), 1.0) - 0.5)
    rule.rest[i, j] = rule.rest[j, i] = rest
    rule.pull[i, j] = rule.pull[j, i] = pull
    rule.lift[i, j] = lift
    rule.lift[j, i] = -lift


@kernel
def read_pairs(rule: MaillardRule, ledger: Ledger, is_all: bool) -> None:
    """Update the pairs that have news, or all pairs."""
    k = rule.strength.size
    for i in range(k):
        for j in range(i + 1, k):
            news = ledger.news[i] + ledger.news[j]
            if is_all or rule.stamp[i, j] != news:
                rule.stamp[i, j] = news
                if ledger.plays[i, j] + ledger.plays[j, i] > 0:
                    read_pair(rule, ledger, i, j)


@kernel
def rate(rule: MaillardRule) -> None:
    """Sweep over the strengths: each takes its mean and variance, given the others."""
    k = rule.strength.size
    for i in range(k):
        total, weighed = 1.0 / (rule.spread * rule.spread), 0.0
        for j in range(k):
            total += rule.pull[i, j]
            weighed += rule.lift[i, j] + rule.pull[i, j] * rule.strength[j]
        rule.strength[i] = weighed / total
        rule.variance[i] = 1.0 / total


@kernel
def ratio(rule: MaillardRule, i: int, j: int) -> float:
    """Return mean / deviation of mu_ij - 1/2, at least what it is without the ranking - `beyond`.

    The mean is rest (theta_i - theta_j) + (1 - rest) (mu^_ij - 1/2), where 1 - rest = noise^2 pull.
    Without the ranking, mu_ij - 1/2 ~ N(0, 2 spread^2 + noise^2) before anything is heard.
    """
    rest, pair = rule.rest[i, j], rule.noise * rule.noise
    mean = rest * (rule.strength[i] - rule.strength[j]) + pair * rule.lift[i, j]
    variance = rest * (pair + rest * (rule.variance[i] + rule.variance[j]))
    precision = rule.pull[i, j] / rest + 1.0 / (2.0 * rule.spread * rule.spread + pair)
    alone = rule.lift[i, j] / (rest * math.sqrt(precision))
    return float(max(mean / math.sqrt(variance), alone - rule.beyond))


@kernel
def find_lowest(rule: MaillardRule) -> None:
    """Find for each arm the least ratio over its opponents."""
    k = rule.strength.size
    for i in range(k):
        rule.lowest[i] = math.inf
        for j in range(k):
            if j != i:
                rule.lowest[i] = min(rule.lowest[i], ratio(rule, i, j))


def lowest_ratios(
    estimates: Estimates, spread: float, noise: float, beyond: float
) -> NDArray[np.float64]:
    """Return the least ratio of each arm, with the strengths that sweeps end at; for a standing.

    It does for all pairs at once what `read_pair`, `rate`, `ratio` and `find_lowest` do in steps.
    """
    k, pair = len(estimates.n), noise * noise
    n, n_tilde = np.maximum(estimates.n, 1.0), estimates.expected
    is_heard = (n_tilde > 0.0) & ~np.eye(k, dtype=np.bool_)
    precision = np.where(is_heard, 4.0 * n_tilde / (2.0 - n_tilde / n), 0.0)
    rest = 1.0 / (1.0 + pair * precision)
    pull = precision * rest
    lift = pull * np.where(is_heard, np.clip(estimates.mean, 0.0, 1.0) - 0.5, 0.0)
    total = pull.sum(axis=1) + 1.0 / (spread * spread)
    strength = np.linalg.solve(np.diag(total) - pull, lift.sum(axis=1))
    variance = 1.0 / total
    mean = rest * (strength[:, None] - strength) + pair * lift
    deviation = np.sqrt(rest * (pair + rest * (variance[:, None] + variance)))
    alone = lift / (rest * np.sqrt(precision + 1.0 / (2.0 * spread * spread + pair)))
    ratios = np.maximum(mean / deviation, alone - beyond)
    np.fill_diagonal(ratios, np.inf)
    return np.asarray(ratios.min(axis=1))


@kernel
def find_leader(rule: MaillardRule, rng: np.random.Generator) -> None:
    """Find the arm with the least against it; the leader stays while no arm has less."""
    best = -math.inf
    for i in range(rule.lowest.size):
        best = max(best, rule.lowest[i])
    if rule.leader[0] >= 0 and rule.lowest[rule.leader[0]] == best:
        return
    ties = 0
    for i in range(rule.lowest.size):
        if rule.lowest[i] == best:
            ties += 1
            if rng.random() * ties < 1.0:
                rule.leader[0] = i


@kernel
def runner_up(rule: MaillardRule) -> float:
    """Return the highest of `lowest` among the arms that do not lead: that of the runner-up."""
    best = -math.inf
    for i in range(rule.lowest.size):
        if i != rule.leader[0]:
            best = max(best, rule.lowest[i])
    return best


@kernel
def weigh(rule: MaillardRule) -> float:
    """Weigh all arms, and return the chance that one challenges the leader."""
    least, total, runner = doubt(rule.lowest[rule.leader[0]]), 0.0, runner_up(rule)
    for i in range(rule.weight.size):
        against = doubt(rule.lowest[i])
        rule.weight[i] = math.exp(least - against) * (1.0 + least)
        if rule.lowest[i] != runner:
            rule.weight[i] /= 1.0 + against
        if i != rule.leader[0]:
            total += rule.weight[i]
    return min(total, _MAX_CHALLENGE_CHANCE)


@kernel
def is_news(rule: MaillardRule, ledger: Ledger) -> bool:
    """Whether something was played or heard since the last look, or the law is learned anew."""
    news = 0
    for i in range(ledger.news.size):
        news += ledger.news[i]
    if news == rule.seen_news[0] and epoch(ledger.assumed) == rule.seen_epoch[0]:
        return False
    rule.seen_news[0] = news
    return True


@kernel
def believe(rule: MaillardRule, ledger: Ledger, t: int) -> bool:
    """Bring beliefs up to date; return whether they may have changed."""
    has_news = is_news(rule, ledger)
    is_due = t % _TICKS_BETWEEN_UPDATES == 0 and t - rule.asked[0] < final_age(ledger.assumed)
    if not has_news and not is_due:
        return False
    read_pairs(rule, ledger, is_due or epoch(ledger.assumed) != rule.seen_epoch[0])
    rule.seen_epoch[0] = epoch(ledger.assumed)
    if has_news:
        rate(rule)
    find_lowest(rule)
    return True


@kernel
def set_chance(rule: MaillardRule, chance: float) -> None:
    """Let the clock go on with the present chance of a challenger."""
    hazard = -math.log1p(-chance)
    if hazard != rule.hazard[0]:
        rule.clock[0] -= rule.turns[0] * rule.hazard[0]
        rule.turns[0] = 0
        rule.hazard[0] = hazard


@kernel
def is_challenged(rule: MaillardRule, rng: np.random.Generator) -> bool:
    """Let a turn pass; return whether the clock has run down, and then wind it up."""
    if rule.clock[0] < 0.0:
        rule.clock[0] = rng.exponential()
    rule.turns[0] += 1
    if rule.clock[0] > rule.turns[0] * rule.hazard[0]:
        return False
    rule.clock[0] = rng.exponential()
    rule.turns[0] = 0
    return True


@kernel
def challenger(rule: MaillardRule, rng: np.random.Generator) -> int:
    """Draw an arm other than the leader by its weight."""
    total, last = 0.0, 0
    for i in range(rule.weight.size):
        if i != rule.leader[0]:
            total += rule.weight[i]
            last = i
    drawn = rng.random() * total
    for i in range(rule.weight.size):
        if i != rule.leader[0]:
            drawn -= rule.weight[i]
            if drawn < 0.0:
                return i
    return last


@select.register(MaillardRule)
def _select(rule: MaillardRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    if is_deaf(ledger.assumed, t):  # by the clock a burst at launch goes to all pairs alike
        return least_asked(ledger, rng)
    if believe(rule, ledger, t):
        find_leader(rule, rng)
        set_chance(rule, weigh(rule))
    if is_challenged(rule, rng):
        rule.asked[0] = t
        return rule.leader[0], challenger(rule, rng)
    return rule.leader[0], rule.leader[0]


@calm_until.register(MaillardRule)
def _calm_until(rule: MaillardRule, ledger: Ledger, arm: int, t: int) -> int:
    if arm != rule.leader[0]:
        return t
    if rule.hazard[0] <= 0.0:
        return int(FOREVER)
    turns = int(min(rule.clock[0] / rule.hazard[0], 1e18))
    while turns > rule.turns[0] and rule.clock[0] <= turns * rule.hazard[0]:
        turns -= 1
    return int(t + max(0, turns - rule.turns[0]))


@pass_over.register(MaillardRule)
def _pass_over(rule: MaillardRule, turns: int) -> None:
    rule.turns[0] += turns
