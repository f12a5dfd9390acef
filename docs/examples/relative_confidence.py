"""Relative confidence sampling (Zoghi et al., WSDM 2014), in plain Python and compiled.

The champion is chosen by sampling, its opponent by upper bounds. Both classes give the same duels.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import duelay
from duelay.rules import kernel, select, upper_bound, wins_and_count


@duelay.text.named("policy", "plain-relative-confidence")
@dataclass(frozen=True)
class PlainRelativeConfidence(duelay.Policy):
    """Relative confidence sampling, in plain Python."""

    alpha: float = 0.51
    delay: duelay.delays.Law | str | None = None
    order: str = "coin"
    window: int | None = None

    def __post_init__(self):
        check_alpha(self.alpha)

    def state(self, n_arms):
        """Return the number of times that each arm has been the champion."""
        return np.zeros(n_arms, dtype=np.int64)

    def choose(self, ledger, t, rng, n_arms, state):
        """Return the champion of a sampled tournament and its most dangerous opponent."""
        now = ledger.estimates()
        first, second = np.triu_indices(n_arms, 1)
        count = now.expected[first, second]
        wins = np.clip(now.wins[first, second], 0.0, count)
        first_wins = rng.beta(wins + 1.0, count - wins + 1.0) >= 0.5
        is_unbeaten = np.ones(n_arms, dtype=np.bool_)
        is_unbeaten[np.where(first_wins, second, first)] = False

        champion = int(np.argmax(is_unbeaten) if is_unbeaten.any() else np.argmin(state))
        state[champion] += 1

        with np.errstate(divide="ignore", invalid="ignore"):
            width = np.sqrt(self.alpha * math.log(t) * now.n[:, champion])
            bounds = (now.wins[:, champion] + width) / now.expected[:, champion]
        bounds[now.expected[:, champion] <= 0.0] = np.inf
        bounds[champion] = 0.5
        return champion, int(np.argmax(bounds))


class RelativeConfidenceRule(NamedTuple):
    """Memory of the compiled rule, and an array for intermediate results."""

    alpha: float
    crowned: np.ndarray  # (K,): how often each arm has been the champion
    is_unbeaten: np.ndarray  # (K,): arms that have won all matches of the sampled tournament


@kernel
def find_champion(rule, ledger, rng):
    """Return the arm that beats all others in a sample, or the least frequent champion."""
    rule.is_unbeaten[:] = True
    k = len(rule.crowned)
    for i in range(k):
        for j in range(i + 1, k):
            wins, count = wins_and_count(ledger, i, j)
            if rng.beta(wins + 1.0, count - wins + 1.0) >= 0.5:
                rule.is_unbeaten[j] = False
            else:
                rule.is_unbeaten[i] = False
    for i in range(k):
        if rule.is_unbeaten[i]:
            return i
    return np.argmin(rule.crowned)


@select.register(RelativeConfidenceRule)
def choose(rule, ledger, t, rng):
    """Return the champion of a sampled tournament and its most dangerous opponent."""
    champion = find_champion(rule, ledger, rng)
    rule.crowned[champion] += 1
    opponent, highest = champion, -math.inf
    for j in range(len(rule.crowned)):
        bound = 0.5
        if j != champion:
            bound = upper_bound(ledger, j, champion, rule.alpha * math.log(t))
        if bound > highest:
            opponent, highest = j, bound
    return champion, opponent


@duelay.text.named("policy", "relative-confidence")
@dataclass(frozen=True)
class RelativeConfidence(duelay.CompiledPolicy):
    """Relative confidence sampling, compiled."""

    alpha: float = 0.51
    delay: duelay.delays.Law | str | None = None
    order: str = "coin"
    window: int | None = None

    def __post_init__(self):
        check_alpha(self.alpha)

    def rule(self, n_arms):
        """Return the initial rule."""
        return RelativeConfidenceRule(
            alpha=self.alpha,
            crowned=np.zeros(n_arms, dtype=np.int64),
            is_unbeaten=np.ones(n_arms, dtype=np.bool_),
        )


def check_alpha(alpha):
    """Raise ValueError if the bounds are too narrow."""
    if not alpha > 0.5:
        raise ValueError(f"alpha must be above 0.5, got {alpha}")
