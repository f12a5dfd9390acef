"""The base classes of policies: immutable recipes that `start` makes into players."""

from __future__ import annotations

import inspect
import operator
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from duelay import text
from duelay._core import checks
from duelay._core.duration import Duration
from duelay.delays.delay import Delay, check_delay
from duelay.delays.ticks_or_clock import LEARNING_WINDOW, WAYS, in_ticks, in_time
from duelay.errors import InvalidTypeError, InvalidValueError
from duelay.ledger.delay_models.kaplan_meier import check_learning
from duelay.ledger.display_order import ORDERS, arrange
from duelay.ledger.ledger import (
    Estimates,
    Ledger,
    age_to,
    assume,
    assume_by_clock,
    open_ledger,
    record,
)
from duelay.policies.self_duels import rival
from duelay.policies.turn import picks_entry, turn_entry
from duelay.policies.user_rule_errors import ERRORS, PAIR_ERRORS, refuse, refuse_pair

if TYPE_CHECKING:
    from duelay.players.player import Player


class Policy(ABC):
    """A recipe for choosing duels: an immutable dataclass that any number of runs may share.

    To write one in plain Python, subclass it and define one method, `choose`. Three fields, or
    class attributes, state what the policy assumes:

    - `delay`: the law, or its text; ``"learn"``; or None: a silent duel then counts as lost until
      its conversion comes.
    - `order`: ``"coin"`` or ``"alternate"`` decides which of the two is shown first; None, or
      ``"champion"``, shows them as `choose` returns them.
    - `window`: the ticks, or with a clock the duration such as ``"14d"``, after which a conversion
      is not counted; None for no limit.

    A policy with more memory than the ledger also defines a method `state`.

    Examples
    --------
    >>> from dataclasses import dataclass, field
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
    delay: Delay | str | None = None
    order: str | None = None
    window: int | Duration | None = None
    self_duels: bool = True  # whether an arm may duel itself; if not, the strongest rival steps in
    goes_by_clock: ClassVar[bool] = True  # whether it can: not where a rule counts ticks
    is_shared: ClassVar[bool] = False  # whether processes may each choose by what all have heard
    target: ClassVar[str] = "condorcet"  # the winner that is sought, and that leads the standing

    @abstractmethod
    def choose(self, *args: Any, **asked: Any) -> tuple[int, int]:
        """Return the two arms that duel next, `first` and `second`.

        Parameters
        ----------
        *args : object
            Nothing: a player passes its arguments by name.
        **asked : object
            Those of the following that the method has as parameters: `ledger`, the plays and
            answers so far, read-only; `t`, the tick, from 1; `rng`, the generator of all random
            choices; `n_arms`; and `state`, the memory of the player, which the method may change.

        Returns
        -------
        tuple of int
            The indices of the two arms.
        """

    def start(
        self,
        arms: Any,
        seed: Any = None,
        *,
        feedback: str | None = None,
        corrects_position: bool = False,
        clock: str | None = None,
    ) -> Player:
        """Make a player of the policy for named arms, or for a number of them.

        Parameters
        ----------
        arms : int or sequence of str
            A sequence of names, or a number. A problem or its matrix is refused, since a policy
            does not know the preferences: for the arms of a problem pass ``problem.arms``.
        seed : int or numpy.random.Generator, optional
            Whatever `numpy.random.default_rng` takes; None draws a seed.
        feedback : str, optional
            ``"conversions"``, if only a win of the first arm is reported; ``"votes"``, if both
            outcomes are, by ``tell(duel, winner=...)``, and silence is no answer. A policy with
            `counts_only` takes ``"counts"`` and nothing else.
        corrects_position : bool
            Whether to remove the advantage of being shown first; for votes.
        clock : str, optional
            ``"wall"`` for a player in continuous time: delays, windows and laws are in time, and
            any number of duels may be asked at one time. None counts each ask as a tick.

        Returns
        -------
        The player, with `ask` and `tell`.

        Raises
        ------
        ValueError
            If an argument is invalid or does not fit the policy.
        """
        from duelay.players.player import Player

        return Player(
            self, arms, seed, feedback=feedback, corrects_position=corrects_position, clock=clock
        )

    @property
    def counts_only(self) -> bool:
        """Whether players are told only the number of conversions, by `tell_count`."""
        return False

    def for_horizon(self, horizon: int) -> Policy:
        """Return the policy for a known horizon; most do not depend on it.

        Parameters
        ----------
        horizon : int
            The number of duels, T.

        Returns
        -------
        Policy
            The same policy, or one with the horizon filled in.
        """
        return self

    def caution(self, n_arms: int, horizon: int | None) -> str | None:
        """Return a warning about a start with these arguments.

        Parameters
        ----------
        n_arms : int
            The number of arms, K.
        horizon : int or None
            The number of duels, if it is known.

        Returns
        -------
        str or None
            A sentence, whose part before the first comma is its brief form; None if there is no
            warning.
        """
        return None

    def ledger(self, n_arms: int, *, by_clock: bool = False) -> Ledger:
        """Return an empty ledger under the policy's assumptions.

        Parameters
        ----------
        n_arms : int
            The number of arms, K.
        by_clock : bool
            Whether ages are in seconds instead of ticks.

        Returns
        -------
        Ledger
            A ledger without duels.
        """
        order = self.order or "champion"
        if by_clock:
            assumed = assume_by_clock(self.delay, in_time(self), n_arms)
        else:
            assumed = assume(self.delay, in_ticks(self.window), n_arms, order)
        return open_ledger(assumed, n_arms, order, self_duels=self.self_duels)

    def state(self, n_arms: int) -> Any:
        """Return the memory of a new player, which `choose` may change; it must pickle.

        Parameters
        ----------
        n_arms : int
            The number of arms, K.

        Returns
        -------
        object
            The memory; None, as by default, if `choose` needs none.
        """
        return None

    def rule(self, n_arms: int) -> Any:
        """Return the state of the rule at its start; for plain Python, the result of `state`.

        Parameters
        ----------
        n_arms : int
            The number of arms, K.

        Returns
        -------
        object
            The state.

        Raises
        ------
        InvalidValueError
            If `choose` has a parameter that a player does not pass.
        """
        _asked(self)  # refuses an unknown parameter of `choose` before the first duel
        state = self.state(n_arms)
        if state is None and "state" in inspect.signature(self.choose).parameters:
            raise InvalidValueError(
                f"choose asks for state, and {type(self).__name__} has none: give it a method "
                f"state(self, n_arms) that returns one"
            )
        return state

    def active(self, rule: Any, n_arms: int) -> NDArray[np.bool_]:
        """Return which arms the rule has not dropped.

        Parameters
        ----------
        rule : object
            The state of the rule.
        n_arms : int
            The number of arms, K.

        Returns
        -------
        ndarray of bool
            (K,), True for each arm that is still played.
        """
        return np.ones(n_arms, dtype=np.bool_)

    def leads_by(self, estimates: Estimates) -> NDArray[np.float64] | None:
        """Return a number for each arm; the arm with the largest number leads a standing.

        Parameters
        ----------
        estimates : Estimates
            The estimates of the ledger.

        Returns
        -------
        ndarray of float or None
            (K,), the numbers. With None, as for most policies, the arm leads that beats the most
            others by the estimates.
        """
        return None

    def turn(self, rule: Any, ledger: Ledger, t: int, rng: np.random.Generator) -> tuple[int, int]:
        """Advance the ledger to tick t, choose a pair and record it.

        Parameters
        ----------
        rule : object
            The state of the rule.
        ledger : Ledger
            The plays and answers so far, which is changed.
        t : int
            The tick, from 1.
        rng : numpy.random.Generator
            The source of randomness.

        Returns
        -------
        tuple of int
            The first arm and the second.
        """
        age_to(ledger, t)
        first, second = self._pick(rule, ledger, t, rng)
        record(ledger, first, second, t)
        return first, second

    def pick(
        self, rule: Any, ledger: Ledger, t: int, rng: np.random.Generator, n: int = 1
    ) -> list[tuple[int, int]]:
        """Choose n pairs and their orders for a ledger at tick t, without recording them.

        Parameters
        ----------
        rule : object
            The state of the rule.
        ledger : Ledger
            The plays and answers so far.
        t : int
            The tick, from 1.
        rng : numpy.random.Generator
            The source of randomness.
        n : int
            The number of pairs.

        Returns
        -------
        list of tuple of int
            The first arm and the second of each duel.
        """
        return [self._pick(rule, ledger, t + k, rng) for k in range(n)]

    def _pick(self, rule: Any, ledger: Ledger, t: int, rng: np.random.Generator) -> tuple[int, int]:
        k = len(ledger.plays)
        offered = {"ledger": ledger, "t": t, "rng": rng, "n_arms": k, "state": rule}
        pair = self.choose(**{name: offered[name] for name in _asked(self)})
        try:
            first, second = (-1 if isinstance(arm, bool) else operator.index(arm) for arm in pair)
        except (TypeError, ValueError):
            first = second = -1
        if not (0 <= first < k and 0 <= second < k):
            raise InvalidValueError(f"choose must return two arms from 0 to {k - 1}, got {pair!r}")
        if first == second and not ledger.self_duels:
            second = rival(ledger, first, t)
        first, second = arrange(ledger.order, first, second, rng)
        return int(first), int(second)

    def __str__(self) -> str:
        return text.form(self)


_OFFERED = ("ledger", "t", "rng", "n_arms", "state")
_ASKED: weakref.WeakKeyDictionary[type, tuple[str, ...]] = weakref.WeakKeyDictionary()


def _asked(policy: Policy) -> tuple[str, ...]:
    """Return the parameters of a policy's `choose`; raise ValueError for an unknown one."""
    if type(policy) not in _ASKED:
        parameters = inspect.signature(policy.choose).parameters.values()
        given = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        for p in given:
            if p.name not in _OFFERED and p.default is p.empty:
                hint = checks.nearest(p.name, _OFFERED)
                raise InvalidValueError(
                    f"choose asks for {p.name!r}, which is unknown{hint}; there are: "
                    f"{', '.join(_OFFERED)}"
                )
        takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
        names = _OFFERED if takes_all else [p.name for p in given if p.name in _OFFERED]
        _ASKED[type(policy)] = tuple(names)
    return _ASKED[type(policy)]


class CompiledPolicy(Policy):
    """A policy whose rule is compiled, in the simulator and in players.

    To write one, subclass it and define one method, `rule`. It returns a NamedTuple of numbers and
    arrays: what a new player remembers, and room to work in. The type of that NamedTuple picks the
    function that chooses, registered with `duelay.rules.select`. The policy says what it assumes as
    a `Policy` does: `delay`, `order`, `window`, `self_duels`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from typing import NamedTuple
    >>> import duelay
    >>> class AnyoneRule(NamedTuple):
    ...     n_arms: int
    >>> @duelay.rules.select.register(AnyoneRule)
    ... def choose(rule, ledger, t, rng):
    ...     return int(rng.random() * rule.n_arms), int(rng.random() * rule.n_arms)
    >>> @dataclass(frozen=True)
    ... class Anyone(duelay.CompiledPolicy):
    ...     '''Two arms at random.'''
    ...     def rule(self, n_arms):
    ...         return AnyoneRule(n_arms)
    >>> Anyone().start(3, seed=0).ask()
    Duel(id=0, first=1, second=0)
    """

    def choose(self, *args: Any, **asked: Any) -> tuple[int, int]:
        """Raise TypeError: a compiled rule is called with its state, see `turn`."""
        raise InvalidTypeError(f"{type(self).__name__} chooses with its rule's state: use start()")

    @abstractmethod
    def rule(self, n_arms: int) -> Any:
        """Return the state of the rule at its start; its type picks the compiled `select`."""

    def active(self, rule: Any, n_arms: int) -> NDArray[np.bool_]:
        """Return which arms the rule has not dropped: its own list, where it keeps one."""
        return np.array(getattr(rule, "active", np.ones(n_arms)), dtype=np.bool_)

    def turn(self, rule: Any, ledger: Ledger, t: int, rng: np.random.Generator) -> tuple[int, int]:
        """Call the compiled function that brings the ledger to tick t and chooses a pair."""
        first, second = _compiled(turn_entry, rule, ledger, t, rng)
        return int(first), int(second)

    def pick(
        self, rule: Any, ledger: Ledger, t: int, rng: np.random.Generator, n: int = 1
    ) -> list[tuple[int, int]]:
        """Call the compiled function that chooses pairs and their orders."""
        pairs = np.zeros((n, 2), dtype=np.int64)
        _compiled(picks_entry, rule, ledger, t, rng, pairs)
        return [(first, second) for first, second in pairs.tolist()]


def _compiled(call: Callable[..., Any], rule: Any, ledger: Ledger, *args: Any) -> Any:
    try:
        return call(rule, ledger, *args)
    except ERRORS as error:
        refuse(rule, error)
    except PAIR_ERRORS as error:
        refuse_pair(rule, len(ledger.plays), error)
        raise


class LawPolicy(CompiledPolicy):
    """A compiled policy whose ledger knows a delay law: it has `delay`, `window` and `order`."""

    goes_without_law: ClassVar[bool] = False
    delay: Delay | str | None
    order: str

    def __post_init__(self) -> None:
        learns = self.goes_without_law and self.delay in WAYS
        if not (learns or (self.goes_without_law and self.delay is None)):
            object.__setattr__(self, "delay", self._known_law())
        object.__setattr__(self, "window", checks.window(self.window))
        checks.yes_or_no("self_duels", self.self_duels)
        if learns and self.window is None:
            object.__setattr__(self, "window", LEARNING_WINDOW)
        checks.one_of("order", self.order, ORDERS)
        if learns:
            check_learning(str(self.delay), self.order, self.window)
        if self.delay == "learn-from-self-duels" and not self.self_duels:
            raise InvalidValueError(
                "delay='learn-from-self-duels' needs self_duels=True: there is nothing else that "
                "it learns from"
            )

    def _known_law(self) -> Delay:
        """Return the law; refuse an unknown word, and list those that are allowed."""
        if not self.goes_without_law and (self.delay is None or self.delay in WAYS):
            raise InvalidValueError(
                f"{type(self).__name__} must be told a delay law, such as geometric:0.01, got "
                f"{self.delay!r}: DoubleThompson, RMED and MaillardSampling can do without"
            )
        word, laws = self.delay, text.names("law")
        is_word = isinstance(word, str) and word.partition(":")[0].strip() not in laws
        if self.goes_without_law and is_word and not checks.is_number(str(word)):
            hint = checks.nearest(word, [*WAYS, *laws])
            raise InvalidValueError(
                f"delay must be None, 'learn', 'learn-from-self-duels' or a law{hint}, got "
                f"{word!r}; laws are: {', '.join(sorted(laws))}",
                argument="delay",
            )
        return check_delay(word)


@dataclass(frozen=True, kw_only=True)
class AnyLedgerPolicy(LawPolicy):
    """A compiled policy that also works without a law; the coin is its default order."""

    goes_without_law: ClassVar[bool] = True
    delay: Delay | str | None = None
    order: str = "coin"
    window: int | Duration | None = None
