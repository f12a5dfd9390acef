"""A lower bound that holds at every horizon: the least that not knowing the arms' names costs.

A policy may know the whole matrix, but not the names of the arms. `docs/theory.md` has the proof.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from duelay._core import checks
from duelay._core.arrays import Floats
from duelay.problems.problem import Problem, check_problem

Names = NDArray[np.int64]  # (..., K): the arm whose part each arm plays

_LARGE = 1e12  # in place of infinity, where a search must compare
_MIN_DUELS = 0.01  # duels in T: fewer are as good as none
_MIN_VIOLATION = 1e-3  # nats: an inequality that is violated by less counts as met
_MAX_SLACK = 1.0  # nats: a tangent that is further away is dropped
_MAX_ARMS_ENUMERATED = 7  # arms: all their names are tried
_MAX_HORIZON = 10**8  # duels: beyond, shares are as small as the rounding of linear programs
_MAX_UNUSED_ROUNDS = 8  # rounds: a tangent that has had no weight for longer is dropped
_SECONDS_BEFORE_PROGRESS = 2
_MAX_ROUNDS = 400
_MAX_IDLE_ROUNDS, _MIN_GAIN = 8, 3e-4  # the search ends after so many rounds that gain less


def finite_lower_bound(problem: Problem, horizon: int, *, tau_window: float = 1.0) -> float:
    """Return a regret that no policy can undercut at the horizon, averaged over names of the arms.

    The policy may know the matrix and be told every outcome at once, but not which arm is which. A
    policy whose choices do not depend on the names has that average regret on the problem itself.
    Let p_ab be the expected share of its duels that are of a and b, and s a renaming of the arms.
    The bound is the least value of the sum of T p_ab (Delta_a + Delta_b) / 2 where, for every s,

        KL(p, p o s)  <=  T sum over pairs of p_ab d(mu_ab, mu_s(a)s(b)).

    This is a convex program. It is solved from below, by linear programs with tangents of the left
    side, for the names that are hardest to distinguish from the true ones; their weights prove the
    number that is returned. Delays with one law for all pairs take information away, so that the
    bound holds with them too. 12 arms take a second, 20 some ten; after two seconds a terminal
    shows the progress.

    Parameters
    ----------
    problem : Problem
        The preferences.
    horizon : int
        T. Beyond 10^8 the bound of 10^8 is returned, since regret never falls.
    tau_window : float
        tau_M, the share of conversions that ever arrive; d is then that of tau_M mu.

    Returns
    -------
    The bound.

    Examples
    --------
    >>> from duelay import Problem
    >>> problem = Problem([[0.5, 0.6], [0.4, 0.5]])
    >>> [round(finite_lower_bound(problem, horizon), 1) for horizon in (100, 10_000, 1_000_000)]
    [1.6, 5.1, 8.0]

    References
    ----------
    Garivier, Ménard, Stoltz. Explore First, Exploit Next: The True Shape of Regret in Bandit
    Problems. Mathematics of Operations Research 2019, Section 2: the inequality, for bandits.
    """
    from scipy.optimize import linprog

    check_problem(problem)
    horizon = min(checks.whole("horizon", horizon), _MAX_HORIZON)
    tau_window = checks.number("tau_window", tau_window, least=0, most=1)
    renamed = _Renamed(problem, horizon, tau_window)
    cost = horizon * (problem.gaps[renamed.a] + problem.gaps[renamed.b]) / 2
    shares = np.eye(len(cost))[renamed.place[problem.winner, problem.winner]]
    unit = np.where(shares, 1.0, 1 / horizon)  # almost all duels are the winner's with itself
    blends = np.geomspace(0.5, _MIN_DUELS / horizon, 9)
    table = np.zeros((0, 1 + len(cost)))  # table[:, 0] + table[:, 1:] p <= 0
    used = np.zeros(0, dtype=np.int64)  # the round in which each row last had weight
    bound, idle = 0.0, 0
    rounds = tqdm(
        range(_MAX_ROUNDS),
        desc="finite lower bound",
        bar_format="{desc}, {n} rounds, {elapsed}",  # nobody knows how many there will be
        delay=_SECONDS_BEFORE_PROGRESS,
        disable=None,
        leave=False,
    )
    for now in rounds:
        missed = renamed.missed(shares)
        if not missed:
            break
        # At its corners a linear program has shares of 0, where tangents say little.
        around = [(1 - blend) * shares + blend / len(shares) for blend in blends]
        rows = [renamed.tangent(one, names) for one in around for names in missed]
        table, used = np.vstack([table, rows]), np.append(used, np.full(len(rows), now))
        answer = linprog(
            cost * unit,
            A_ub=table[:, 1:] * unit,
            b_ub=-table[:, 0],
            A_eq=unit[None, :],
            b_eq=[1.0],
            method="highs",
            options={"presolve": False},  # there is nothing to find: every number of a row counts
        )
        shares = np.maximum(answer.x * unit, 0.0)
        # Any weights of the rows prove a bound, however well the solver has done.
        weights = np.maximum(-answer.ineqlin.marginals, 0.0)
        proved = float(weights @ table[:, 0] + (cost + weights @ table[:, 1:]).min())
        used[weights > 0] = now
        is_kept = (answer.slack < _MAX_SLACK) & (used > now - _MAX_UNUSED_ROUNDS)
        table, used = table[is_kept], used[is_kept]
        idle = 0 if proved > bound * (1 + _MIN_GAIN) else idle + 1
        bound = max(bound, proved)
        rounds.set_description_str(f"finite lower bound: at least {bound:.4g}", refresh=False)
        if idle == _MAX_IDLE_ROUNDS:
            break
    rounds.close()
    return bound


class _Renamed:
    """The problem under other names of its arms, and how much duels tell it from the true one."""

    def __init__(self, problem: Problem, horizon: float, tau_window: float) -> None:
        from scipy.special import rel_entr

        k, chances = problem.n_arms, tau_window * problem.chances
        self.k, self.winner = k, problem.winner
        self.a, self.b = np.triu_indices(k)  # the pairs, those of an arm with itself included
        self.place = np.zeros((k, k), dtype=np.int64)
        self.place[self.a, self.b] = self.place[self.b, self.a] = np.arange(len(self.a))
        it, other = chances[:, :, None, None], chances  # a duel of a and b, one of c and d
        told = horizon * (rel_entr(it, other) + rel_entr(1 - it, 1 - other))
        self.least = _MIN_DUELS / horizon / len(self.a)
        ranks = np.argsort(problem.gaps, kind="stable")
        self.starts = {int(arm): self.first(int(arm), ranks) for arm in ranks[1:]}
        self.told = np.maximum(told, told.transpose(1, 0, 3, 2))  # the order that tells more
        self.certain = np.isinf(self.told)  # one duel of such a pair may tell all
        self.told[self.certain] = 0.0

    def of(self, names: Names) -> tuple[Names, Floats, NDArray[np.bool_]]:
        """Return for each pair: whose part it plays, what its duels tell, if one may tell all."""
        c, d = names[..., self.a], names[..., self.b]
        which = self.a, self.b, c, d
        return self.place[c, d], self.told[which], self.certain[which]

    def excess(self, shares: Floats, names: Names) -> Floats:
        """Return KL(p, p o s) less what all duels tell: above 0, the inequality is violated."""
        parts, told, certain = self.of(names)
        log = np.log(np.maximum(shares, self.least))
        told = told @ shares + _LARGE * certain.sum(axis=-1)
        return np.asarray((log - log[parts]) @ shares - told)

    def tangent(self, shares: Floats, names: Names) -> Floats:
        """Return a linear inequality that all shares fulfil: its constant, its coefficients.

        p u + 1 - (p o s) exp(u) <= KL(p, p o s) for every u, and u = log(p / p o s) is the best.
        """
        parts, told, _ = self.of(names)  # of names that are missed no pair is certain
        u = np.log(shares / shares[parts])
        row = u - told
        row[parts] -= np.exp(u)
        return np.append(1.0, row)

    def missed(self, shares: Floats) -> list[Names]:
        """Return the hardest names for each other arm as winner, if they violate the inequality."""
        starts = self.starts
        if self.k > _MAX_ARMS_ENUMERATED:
            ends = self.climb(shares, np.concatenate(list(starts.values())))
            starts = dict(zip(starts, ends.reshape(len(starts), -1, self.k), strict=True))
        found = [names[self.excess(shares, names).argmax()] for names in starts.values()]
        return [names for names in found if self.excess(shares, names) > _MIN_VIOLATION]

    def climb(self, shares: Floats, names: Names) -> Names:
        """Swap two parts as long as that makes the names harder to tell; return where this ends.

        The best swap is found from what each arm adds in each part while the other arms stay: K³
        numbers a step, and not one for every pair under every swap. The winner's part stays.
        """
        by_arm, by_pair = self.adds(shares)
        rows, arms = np.arange(self.k)[:, None], np.arange(self.k)
        names, excess = names.copy(), self.excess(shares, names)
        going = np.arange(len(names))
        while len(going):
            now = names[going]
            gain = by_arm + by_pair[arms, now].sum(axis=1)  # [way, arm, part]
            gain = np.take_along_axis(gain, now[:, None, :], axis=2)  # arm x in the part of y
            own = np.diagonal(gain, axis1=1, axis2=2)
            gain = gain + gain.transpose(0, 2, 1) - own[:, :, None] - own[:, None, :]
            # x and y met in their old parts, taken away twice, and meet in their new ones.
            u, v = now[:, :, None], now[:, None, :]
            gain += by_pair[arms, v, rows, u] + by_pair[arms, u, rows, v]
            held = now == self.winner
            gain[held[:, :, None] | held[:, None, :]] = -np.inf
            x, y = np.unravel_index(gain.reshape(len(now), -1).argmax(axis=1), (self.k, self.k))
            way = np.arange(len(now))
            now[way, x], now[way, y] = now[way, y], now[way, x]
            reached = self.excess(shares, now)
            is_up = reached > excess[going] + 1e-9
            going = going[is_up]
            names[going], excess[going] = now[is_up], reached[is_up]
        return names

    def adds(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return what an arm in a part adds to the excess: by itself, and with another arm.

        The second is [b, d, a, c]: arm b in the part d, with arm a in the part c.
        """
        p = shares[self.place]
        log = np.log(np.maximum(p, self.least))
        adds = p[:, :, None, None] * (log[:, :, None, None] - log - self.told)
        adds[self.certain] = -_LARGE
        by_arm = np.einsum("aacc->ac", adds).copy()
        arms = np.arange(self.k)
        adds[arms, arms] = 0.0
        adds[:, :, arms, arms] = 0.0
        return by_arm, np.ascontiguousarray(adds.transpose(1, 3, 0, 2))

    def first(self, arm: int, ranks: Names) -> Names:
        """Return all names under which `arm` is the winner; with many arms, two of these.

        One swaps `arm` and the winner. The other puts `arm` before all arms that were better.
        """
        swap, lift = np.arange(self.k), np.arange(self.k)
        swap[[arm, self.winner]] = swap[[self.winner, arm]]
        better = ranks[: int(np.flatnonzero(ranks == arm)[0]) + 1]
        lift[better] = np.roll(better, -1)
        if self.k > _MAX_ARMS_ENUMERATED:
            return np.array([swap, lift])
        others = list(permutations(np.delete(swap, arm)))
        return np.insert(np.array(others), arm, self.winner, axis=1)
