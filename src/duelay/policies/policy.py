"""What a policy is: an immutable recipe, made into a player by `start`."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from duelay import _checks, text
from duelay.delays import Delay
from duelay.delays import check as check_delay
from duelay.learned import learned
from duelay.ledger import Ledger, age_to, assume, open_ledger, record
from duelay.order import ORDERS
from duelay.policies.player import Player
from duelay.rules.turn import turn


class Policy(ABC):
    """A recipe for choosing duels: a frozen dataclass, printable, the same for every run.

    A policy of one's own in plain Python is a subclass with one method, `choose`. It sees a ledger
    in which a silent duel is a lost one until its conversion comes; override `ledger` to assume a
    delay law. A policy that needs a memory of its own may instead be any object whose
    ``start(arms, seed)`` returns a player with `ask` and `tell`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import duelay
    >>> @dataclass(frozen=True)
    ... class Anyone(duelay.Policy):
    ...     '''Two arms at random.'''
    ...     def choose(self, ledger, t, rng):
    ...         return rng.integers(len(ledger.plays)), rng.integers(len(ledger.plays))
    >>> Anyone().start(3, seed=0).ask()
    Duel(id=0, first=2, second=1)
    """

    text_name: str = ""
    window: int | None = None

    @abstractmethod
    def choose(self, ledger: Ledger, t: int, rng: np.random.Generator) -> tuple[int, int]:
        """Return `first` and `second` for tick t = 1, 2, ...; read the ledger, do not write it."""

    def start(self, arms: Any, seed: Any = None, *, feedback: str = "conversions") -> Player:
        """Put the policy to work on named arms, or on a number of them.

        `seed` is anything that `numpy.random.default_rng` takes; None draws one. `feedback` is
        ``"conversions"``, where only a win of the first is ever told; ``"votes"``, where both
        outcomes are, by ``tell(duel, winner=...)``, and silence is just no answer; or
        ``"corrected-votes"``, which also takes out what being shown first is worth.
        """
        return Player(self, arms, seed, feedback=feedback)

    @property
    def is_aggregated(self) -> bool:
        """Whether players hear only how many conversions came, by `tell_count`."""
        return False

    def for_horizon(self, horizon: int) -> Policy:
        """Return the policy for a horizon that is known; most do not care."""
        return self

    def caution(self, n_arms: int, horizon: int | None) -> str | None:
        """Return what somebody should know before a start with so many arms; mostly nothing.

        One sentence, which says it in brief before its first comma.
        """
        return None

    def ledger(self, n_arms: int) -> Ledger:
        """Return an empty ledger under what the policy assumes."""
        return open_ledger(assume(None, self.window, n_arms), n_arms)

    def rule(self, n_arms: int) -> Any:
        """Return the state of the rule at its start; None for a rule in plain Python."""
        return None

    def active(self, rule: Any, n_arms: int) -> NDArray[np.bool_]:
        """Return which arms the rule has not dropped."""
        return np.ones(n_arms, dtype=np.bool_)

    def turn(self, rule: Any, ledger: Ledger, t: int, rng: np.random.Generator) -> tuple[int, int]:
        """Bring the ledger to tick t, choose a pair, write it down."""
        age_to(ledger, t)
        pair = self.choose(ledger, t, rng)
        k = len(ledger.plays)
        try:
            first, second = (operator.index(arm) for arm in pair)
        except (TypeError, ValueError):
            first = second = -1
        if not (0 <= first < k and 0 <= second < k):
            raise ValueError(f"choose must return two arms from 0 to {k - 1}, got {pair!r}")
        record(ledger, first, second, t)
        return first, second

    def __str__(self) -> str:
        return text.form(self)


class CompiledPolicy(Policy):
    """A policy whose rule is a kernel: the simulator runs it compiled."""

    def choose(self, ledger: Ledger, t: int, rng: np.random.Generator) -> tuple[int, int]:
        """Not how a compiled rule is called: its state goes with it, see `turn`."""
        raise TypeError(f"{type(self).__name__} chooses with its rule's state: use start()")

    @abstractmethod
    def rule(self, n_arms: int) -> Any:
        """Return the state of the rule at its start; its type picks the compiled `select`."""

    def active(self, rule: Any, n_arms: int) -> NDArray[np.bool_]:
        """Return which arms the rule has not dropped: its own list, where it keeps one."""
        return np.array(getattr(rule, "active", np.ones(n_arms)), dtype=np.bool_)

    def turn(self, rule: Any, ledger: Ledger, t: int, rng: np.random.Generator) -> tuple[int, int]:
        """Bring the ledger to tick t, choose a pair, write it down: the compiled function."""
        first, second = turn(rule, ledger, t, rng)
        return int(first), int(second)


class LawPolicy(CompiledPolicy):
    """A compiled policy whose ledger knows a delay law: it has `delay`, `window` and `order`."""

    goes_without_law: ClassVar[bool] = False
    delay: Delay | str | None
    order: str

    def __post_init__(self) -> None:
        if not (self.goes_without_law and self.delay in (None, "learn")):
            object.__setattr__(self, "delay", self._known_law())
        object.__setattr__(self, "window", _checks.window(self.window))
        _checks.one_of("order", self.order, ORDERS)

    def _known_law(self) -> Delay:
        """Return the law; where a word could have been one too, refuse it with all there are."""
        word, laws = self.delay, text.names("law")
        is_word = isinstance(word, str) and word.partition(":")[0].strip() not in laws
        if self.goes_without_law and is_word and not _checks.is_number(str(word)):
            hint = _checks.nearest(word, ["learn", *laws])
            raise ValueError(
                f"delay must be None, 'learn' or a law{hint}, got {word!r}; laws are: "
                f"{', '.join(sorted(laws))}"
            )
        return check_delay(word)

    def ledger(self, n_arms: int) -> Ledger:
        """Return a ledger under the assumed law."""
        if self.delay == "learn":
            assumed = learned(self.window, n_arms, self.order != "champion")
        else:
            law = None if self.delay is None else check_delay(self.delay, n_arms)
            assumed = assume(law, self.window, n_arms)
        return open_ledger(assumed, n_arms, self.order)


@dataclass(frozen=True)
class AnyLedgerPolicy(LawPolicy):
    """A compiled policy that also goes without a law, by the coin."""

    goes_without_law: ClassVar[bool] = True
    delay: Delay | str | None = None
    order: str = "coin"
    window: int | None = None
