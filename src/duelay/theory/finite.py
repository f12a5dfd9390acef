"""A lower bound that holds at every horizon: what not knowing which arm is which must cost.

A policy may know the whole matrix, but not the names of the arms. `docs/theory.md` has the proof.
"""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks, extras
from duelay.problems import Problem

Floats = NDArray[np.float64]
Names = NDArray[np.int64]  # (..., K): the arm whose part each arm plays

_FAR = 1e12  # in place of infinity, where a search must compare
_LEAST = 0.01  # duels in T: fewer are as good as none
_MISSED = 1e-3  # nats: what is missed by less is met
_SLACK = 1.0  # nats: a tangent that is further away is dropped
_FEW = 7  # arms: all their names are tried
_LONGEST = 1e8  # duels: beyond, shares are as small as what linear programs round
_ROUNDS, _IDLE, _GAIN = 400, 5, 3e-4  # it ends after five rounds that gain less than this share


def finite_lower_bound(problem: Problem, horizon: float, *, tau_window: float = 1.0) -> float:
    """No policy has less regret than this at the horizon, on average over all names of the arms.

    It may know the matrix and be told every outcome at once, but not which arm is which. A policy
    to which names are nothing but names has that average on the problem itself. Let p_ab be the
    share of duels of a and b that it expects, and s other names. The bound is the least value of
    the sum of T p_ab (Delta_a + Delta_b) / 2 where, for every s,

        KL(p, p o s)  <=  T sum over pairs of p_ab d(mu_ab, mu_s(a)s(b)).

    This is a convex program. It is solved from below, by linear programs with tangents of the left
    side, for the names that are hardest to tell from the true ones; what is returned is proved by
    their weights. Where conversions are told, and a share tau_M of them is ever heard, d is that of
    tau_M mu. Delays with one law for all pairs take information away: it holds with them too.
    A horizon beyond 10^8 has the bound of that: regret never falls. Needs scipy (the extra
    ``winners``); 12 arms take seconds, 20 take minutes.

    >>> from duelay import Problem
    >>> problem = Problem([[0.5, 0.6], [0.4, 0.5]])
    >>> [round(finite_lower_bound(problem, horizon), 1) for horizon in (100, 10_000, 1_000_000)]
    [1.6, 5.1, 8.0]

    References
    ----------
    Garivier, Ménard, Stoltz. Explore First, Exploit Next: The True Shape of Regret in Bandit
    Problems. Mathematics of Operations Research 2019, Section 2: the inequality, for bandits.
    """
    extras.need("finite lower bounds", ["scipy"], "winners")
    from scipy.optimize import linprog

    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a duelay.Problem, got a {type(problem).__name__}")
    horizon = min(checks.number("horizon", horizon, least=1), _LONGEST)
    tau_window = checks.number("tau_window", tau_window, least=0, most=1)
    renamed = _Renamed(problem, horizon, tau_window)
    cost = horizon * (problem.gaps[renamed.a] + problem.gaps[renamed.b]) / 2
    shares = np.eye(len(cost))[renamed.place[problem.winner, problem.winner]]
    unit = np.where(shares, 1.0, 1 / horizon)  # few duels are not the winner's with itself
    blends = np.geomspace(0.5, _LEAST / horizon, 9)
    rows: list[Floats] = []
    bound, idle = 0.0, 0
    for _ in range(_ROUNDS):
        missed = renamed.missed(shares)
        if not missed:
            break
        # At its corners a linear program has shares of 0, where tangents say little.
        around = [(1 - blend) * shares + blend / len(shares) for blend in blends]
        rows += [renamed.tangent(one, names) for one in around for names in missed]
        table = np.array(rows)  # table[:, 0] + table[:, 1:] p <= 0
        answer = linprog(
            cost * unit,
            A_ub=table[:, 1:] * unit,
            b_ub=-table[:, 0],
            A_eq=unit[None, :],
            b_eq=[1.0],
            method="highs",
        )
        shares = np.maximum(answer.x * unit, 0.0)
        # Any weights of the rows prove a bound, however well the solver has done.
        weights = np.maximum(-answer.ineqlin.marginals, 0.0)
        proved = float(weights @ table[:, 0] + (cost + weights @ table[:, 1:]).min())
        rows = [row for row, left in zip(rows, answer.slack, strict=True) if left < _SLACK]
        idle = 0 if proved > bound * (1 + _GAIN) else idle + 1
        bound = max(bound, proved)
        if idle == _IDLE:
            break
    return bound


class _Renamed:
    """The problem under other names of its arms: what tells it from the truth."""

    def __init__(self, problem: Problem, horizon: float, tau_window: float) -> None:
        from scipy.special import rel_entr

        k, chances = problem.n_arms, tau_window * problem.chances
        self.k, self.winner = k, problem.winner
        self.a, self.b = np.triu_indices(k)  # the pairs, those of an arm with itself included
        self.place = np.zeros((k, k), dtype=np.int64)
        self.place[self.a, self.b] = self.place[self.b, self.a] = np.arange(len(self.a))
        it, other = chances[:, :, None, None], chances  # a duel of a and b, one of c and d
        told = horizon * (rel_entr(it, other) + rel_entr(1 - it, 1 - other))
        self.least = _LEAST / horizon / len(self.a)
        ranks = np.argsort(problem.gaps, kind="stable")
        self.starts = {int(arm): self.first(int(arm), ranks) for arm in ranks[1:]}
        self.told = np.maximum(told, told.transpose(1, 0, 3, 2))  # the order that tells more

    def of(self, names: Names) -> tuple[Names, Floats]:
        """Return the pair whose part each pair plays, and what its duels tell."""
        c, d = names[..., self.a], names[..., self.b]
        return self.place[c, d], self.told[self.a, self.b, c, d]

    def excess(self, shares: Floats, names: Names) -> Floats:
        """By how much KL(p, p o s) is above what all duels tell."""
        parts, told = self.of(names)
        p = np.maximum(shares, self.least)
        certain = np.isinf(told)  # one duel of such a pair may tell all
        told = np.where(certain, 0.0, told) @ shares + _FAR * certain.sum(axis=-1)
        return np.asarray((shares * np.log(p / p[parts])).sum(axis=-1) - told)

    def tangent(self, shares: Floats, names: Names) -> Floats:
        """Return a linear inequality that all shares fulfil: its constant, its coefficients.

        p u + 1 - (p o s) exp(u) <= KL(p, p o s) for every u, and u = log(p / p o s) is the best.
        """
        parts, told = self.of(names)
        u = np.log(shares / shares[parts])
        row = u - told
        row[parts] -= np.exp(u)
        return np.append(1.0, row)

    def missed(self, shares: Floats) -> list[Names]:
        """Return, for each arm that may be taken for the winner, the hardest names, if missed."""
        found = [self.hardest(shares, arm) for arm in self.starts]
        return [names for names in found if self.excess(shares, names) > _MISSED]

    def hardest(self, shares: Floats, arm: int) -> Names:
        """Return the hardest of all names under which `arm` is the winner, or of some."""
        names = self.starts[arm]
        if self.k > _FEW:
            swaps = np.array(list(combinations(np.delete(np.arange(self.k), arm), 2)))
            names = np.array([self.climb(shares, start, swaps) for start in names])
        return np.asarray(names[self.excess(shares, names).argmax()])

    def climb(self, shares: Floats, names: Names, swaps: Names) -> Names:
        """Return the end of a way on which every swap makes the names harder to tell."""
        excess = self.excess(shares, names)
        while True:
            ways = np.tile(names, (len(swaps), 1))
            np.put_along_axis(ways, swaps, names[swaps[:, ::-1]], axis=1)
            reached = self.excess(shares, ways)
            if reached.max() <= excess + 1e-9:
                return names
            names, excess = ways[reached.argmax()], reached.max()

    def first(self, arm: int, ranks: Names) -> Names:
        """Return all names under which `arm` is the winner; of many arms, two such.

        In one the two are swapped, in the other `arm` comes before all that were better.
        """
        swap, lift = np.arange(self.k), np.arange(self.k)
        swap[[arm, self.winner]] = swap[[self.winner, arm]]
        better = ranks[: int(np.flatnonzero(ranks == arm)[0]) + 1]
        lift[better] = np.roll(better, -1)
        if self.k > _FEW:
            return np.array([swap, lift])
        others = list(permutations(np.delete(swap, arm)))
        return np.insert(np.array(others), arm, self.winner, axis=1)
