"""A player applies a policy: `ask` for a duel, and `tell` its answer whenever it comes."""

from __future__ import annotations

import copy
import dataclasses
import numbers
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks, forks, timestamps
from duelay._core.feedback import OUTCOMES, check_correction, check_display, check_feedback
from duelay._version import __version__
from duelay.delays.curve import Curve
from duelay.delays.empirical import Empirical
from duelay.delays.ticks_or_clock import check_clock, in_ticks, in_time
from duelay.errors import InvalidValueError
from duelay.inference.arm_set import (
    ArmSet,
    apply_change,
    check_joining,
    check_retiring,
    rebuild_ledger,
    refuse_changes,
)
from duelay.inference.guarantee import Past
from duelay.inference.leader import active_of
from duelay.inference.player_clock import CLOCKS, Clock
from duelay.inference.standing import Standing
from duelay.inference.standing_builder import PlayerSnapshot, build_standing
from duelay.ledger.delay_models.continuous_time import ByClock, learned_curve
from duelay.ledger.delay_models.kaplan_meier import LearnedLaw
from duelay.ledger.display_order import ORDERS
from duelay.ledger.evidence.eprocess import EProcess
from duelay.ledger.evidence.margin import WINNER
from duelay.ledger.ledger import Ledger, clock_to, for_votes, hear, hear_away, hear_vote, with_room
from duelay.logs.arm_changes import Change, Declaration
from duelay.logs.history import History
from duelay.players.duel_records import Duel, DuelRecords
from duelay.players.replay import book_deciding, check_replay, fit_history
from duelay.problems.validation import check_arms

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from duelay.policies.policy import Policy


class Player:
    """A policy that is applied to K arms; made by ``policy.start(arms, seed)``.

    Each `ask` is one tick. An answer that is told between two asks counts from the second of them,
    so the answer told right after an `ask` has a delay of 1. Players can be pickled and copied, and
    the copy chooses the same duels. Several threads may share one player.

    Parameters
    ----------
    policy : Policy
        A `duelay.policies.Policy`.
    arms : int or sequence of str
        The names of the arms, or their number.
    seed : int or numpy.random.Generator, optional
        A number, a NumPy Generator, or None for a random start.
    feedback : str, optional
        ``"conversions"`` if only wins of the first arm are told, ``"votes"`` if both outcomes are,
        ``"counts"`` if only their number is. The policy decides if it is None.
    corrects_position : bool
        Whether votes estimate and remove the advantage of the first place.
    clock : str, optional
        ``"wall"`` for times in seconds instead of ticks.

    Examples
    --------
    >>> import duelay
    >>> player = duelay.RUCBDelay().start(["red", "green", "blue"], seed=0)
    >>> duel = player.ask()
    >>> player.tell(duel), player.tell(duel)
    ('counted', 'repeated')
    """

    def __init__(
        self,
        policy: Policy,
        arms: Any,
        seed: Any = None,
        *,
        feedback: str | None = None,
        corrects_position: bool = False,
        clock: str | None = None,
    ) -> None:
        checks.frozen("policy", policy)
        self.arms = check_arms(arms)
        self.policy = policy
        if clock is not None:
            checks.one_of("clock", clock, CLOCKS)
        check_clock(policy, has_clock=clock is not None)
        if (caution := policy.caution(self.n_arms, None)) is not None:
            warnings.warn(caution, stacklevel=3)
        try:
            self._rng = np.random.default_rng(seed)
        except (TypeError, ValueError):
            raise InvalidValueError(
                f"seed must be a number, at least 0, a Generator or None, got {seed!r}",
                argument="seed",
            ) from None
        self.feedback = _feedback(policy, feedback)
        self.corrects_position = check_correction(corrects_position, self.feedback)
        self._clock = None if clock is None else Clock()
        self._window = in_ticks(policy.window) if clock is None else in_time(policy)
        self._ledger, self._rule = self._open(self.n_arms)
        self._arm_set = ArmSet(self.arms)
        self._duels = DuelRecords(self.n_arms, by_clock=clock is not None)
        self._counted = 0  # conversions told by number alone
        self._late = 0  # answers told after their window
        self._past: Past | None = None  # how its replayed duels came about
        self._lock = forks.lock(self)  # a server's threads may share a player

    def _open(self, n_arms: int) -> tuple[Ledger, Any]:
        """Return an empty ledger and a rule that has chosen nothing; refuse what cannot be."""
        policy = self.policy
        ledger = policy.ledger(n_arms, **({} if self._clock is None else {"by_clock": True}))
        if self.feedback == "votes":
            ledger = for_votes(ledger, corrects_position=self.corrects_position)
        rule = policy.rule(n_arms)
        active_of(policy, rule, n_arms)  # refuses a wrong one before the first duel
        return ledger, rule

    @property
    def n_arms(self) -> int:
        """K, the arms that are retired included."""
        return len(self.arms)

    @property
    def clock(self) -> Clock | None:
        """The time that the player has reached; None where each ask is a tick."""
        return self._clock

    @property
    def tick(self) -> int:
        """The number of duels asked so far."""
        return len(self._duels)

    def ask(self, at: Any = None) -> Duel:
        """Choose the next duel.

        Parameters
        ----------
        at : float or datetime, optional
            The time at which the duel is shown, for a player with ``clock="wall"``: seconds since
            the epoch or an aware datetime; now if it is left out. A time before the latest known
            time counts as the latest known time.

        Returns
        -------
        Duel
            Its number and two arms. Show them in this order.

        Raises
        ------
        ValueError
            If `at` lies in the future, or the player has no clock.
        """
        with self._lock:
            t = self.tick + 1
            now = self._now(at)
            if now is not None:
                self._ledger = with_room(self._ledger, t)
                clock_to(self._ledger, now)
            i, j = self.policy.turn(self._rule, self._ledger, t, self._rng)
            return self._duels.add(self._arm_set.arm_at[i], self._arm_set.arm_at[j], now)

    def tell(self, duel: Duel | int, winner: str | int | None = None, at: Any = None) -> str:
        """Tell the answer to a duel, at any later time and in any order.

        Parameters
        ----------
        duel : Duel or int
            The duel that `ask` returned, or its id.
        winner : str or int, optional
            For votes ``"first"``, ``"second"``, ``"tie"`` or the number of the arm, which counts as
            a tie in a self-duel. Leave it out for conversions: only wins of the first arm are told.
        at : float or datetime, optional
            The time at which the answer came, for a player with ``clock="wall"``; as in `ask`. For
            a policy that decides, a time before the latest one known stays the time of the answer.

        Returns
        -------
        str
            ``"counted"``; ``"repeated"`` if the duel already has an answer, which stays; ``"late"``
            if the window of the duel has closed. The answer to a self-duel counts and changes no
            preference.

        Raises
        ------
        UnknownDuelError
            If the duel was never asked.
        ValueError
            If `winner` does not fit the duel or the feedback, or `at` is no valid time.
        """
        if self.feedback == "counts":
            raise InvalidValueError(
                "tell does not fit feedback='counts', whose conversions are anonymous: "
                "use tell_count(n)"
            )
        with self._lock:
            number = self._duels.find(duel)
            first, second = self._duels.arms_of(number)
            first_won = self._won(winner, first, second)
            if self._duels.is_answered(number):
                return "repeated"
            now = self._now(at)
            if now is not None and isinstance(self._ledger.assumed, EProcess):
                now = self._event_time(number, at, now)
            if self._duels.is_late(number, self._window, now):
                self._late += 1
                return "late"
            if now is not None:
                clock_to(self._ledger, now)
            self._duels.answer(number, 1.0 if first_won is None else first_won, now)
            i, j = self._arm_set.place_of[first], self._arm_set.place_of[second]
            if min(i, j) < 0:  # of a retired arm: it counts when the arm comes back
                hear_away(self._ledger, number + 1, self.tick + 1)
            elif first_won is None:
                hear(self._ledger, i, j, number + 1, self.tick + 1)
            else:
                hear_vote(self._ledger, i, j, first_won, number + 1, self.tick + 1)
            return "counted"

    def add_arm(self, name: str) -> None:
        """Add an arm, or let a retired arm come back with its past duels.

        The evidence of the other arms stays. The guarantee of a policy that decides stays valid,
        since its threshold rises (`duelay.ledger.evidence.winner_threshold`). Nothing happens if
        the arm is present, so that a program may repeat the call when it restarts.

        Parameters
        ----------
        name : str
            A new name, or the name of a retired arm.

        Raises
        ------
        ValueError
            If the policy needs a fixed set of arms, or decides and counts ticks.
        """
        with self._lock:
            is_full = isinstance(self._ledger.assumed, EProcess) and self._clock is None
            if check_joining(name, self.arms, self._arm_set, is_full=is_full):
                self._change_arms(name, "joined")

    def retire_arm(self, name: str) -> None:
        """Stop asking an arm.

        The arm keeps its number, and answers to its open duels still count. Nothing happens if it
        is retired already.

        Parameters
        ----------
        name : str
            The name of an arm.

        Raises
        ------
        ValueError
            If there is no such arm, or fewer than two arms would stay.
        """
        with self._lock:
            if check_retiring(name, self.arms, self._arm_set):
                self._change_arms(name, "retired")

    def _change_arms(self, name: str, kind: str) -> None:
        """Let an arm join or be retired; nothing changes if that fails. The caller has the lock."""
        refuse_changes(self.policy, by_clock=self._clock is not None)
        arms = self.arms if name in self.arms else (*self.arms, name)
        at = None if self._clock is None or self.tick == 0 else self._clock.now
        changes = (*self._arm_set.changes, Change(self.tick, name, kind, at))
        is_deciding = isinstance(self._ledger.assumed, EProcess)
        arm_set, rule = ArmSet(arms, changes, of_all=is_deciding), self._rule
        if is_deciding:
            ledger = apply_change(self._ledger, arms.index(name), kind, self.policy)
        else:
            past = self._history()
            past = dataclasses.replace(past, n_arms=len(arms), arms=arms, changes=changes)
            ledger, rule = self._open(len(arm_set.shown))
            ledger = rebuild_ledger(ledger, past, arm_set)
        self._duels.renumber(len(arms))
        self.arms, self._arm_set, self._ledger, self._rule = arms, arm_set, ledger, rule

    def tell_count(self, n: int) -> None:
        """Tell how many conversions arrived since the last `ask`, for ``feedback="counts"``.

        They are credited to the pair in play, as in Appendix C of the paper.

        Parameters
        ----------
        n : int
            The number of conversions, at most the number of duels without one.

        Raises
        ------
        ValueError
            If the feedback is not ``"counts"``, or `n` is too large.
        """
        if self.feedback != "counts":
            raise InvalidValueError(
                "tell_count needs a policy with feedback='counts': use tell(duel), which says "
                "which duel converted"
            )
        n = checks.whole("n", n, least=0)
        with self._lock:
            silent = self.tick - self._counted
            if n > silent:
                raise InvalidValueError(
                    f"n must be at most {silent}, the number of silent duels, got {n}"
                )
            if n:
                first, second = self._duels.arms_of(-1)
                self._ledger.conversions[first, second] += n
                self._counted += n

    def standing(self, confidence: float | None = None) -> Standing:
        """Return the estimates, intervals, leader and declared winner.

        Estimates are those of the next tick. Evidence, winner and intervals are those of the last
        `ask`: answers that were told since then may be a partial batch that favours one arm, and
        count from the next `ask` on.

        Parameters
        ----------
        confidence : float, optional
            The probability with which the intervals hold; 0.95 if it is left out, and 1 - `error`
            for a policy that decides.

        Returns
        -------
        Standing
        """
        with self._lock:
            is_deciding = isinstance(self._ledger.assumed, EProcess)
            snapshot = PlayerSnapshot(
                policy=self.policy,
                arms=self.arms,
                feedback=self.feedback,
                corrects_position=self.corrects_position,
                tick=self.tick,
                order=self._order(),
                error=self._error() if is_deciding else None,
                ledger=copy.deepcopy(self._ledger),
                arm_set=self._arm_set,
                active=active_of(self.policy, self._rule, len(self._arm_set.shown)),
                pending=self._pending(),
                history=None if self.feedback == "counts" else self._history(),
                past=self._past,
                clock=copy.copy(self._clock),
                late=self._late,
            )
        return build_standing(snapshot, confidence)

    def history(self) -> History:
        """Return every duel so far, its answer, and when the answer came.

        Returns
        -------
        History
            For `duelay.assumptions`, `History.to_csv` or `replay`.

        Raises
        ------
        ValueError
            If ``feedback="counts"``, where answers do not belong to a duel.
        """
        if self.feedback == "counts":
            raise InvalidValueError(
                "history does not fit feedback='counts', whose conversions are anonymous: which "
                "duel was heard, and when, is not known"
            )
        with self._lock:
            return self._history()

    def _history(self) -> History:
        """Return `history`; the caller holds the lock."""
        return History(
            n_arms=self.n_arms,
            **self._duels.columns(),
            window=self._window,
            now=self._clock.now if self._clock is not None and self.tick else None,
            feedback=self.feedback,
            order=self._order(),
            display=getattr(self.policy, "display", "pair"),
            arms=self.arms,
            chosen_by=self._chosen_by(),
            changes=self._arm_set.changes,
            declared=self._declared(),
        )

    def replay(self, history: History) -> Player:
        """Replay every duel and answer of a history, and continue from there.

        The player must have just started. Its policy need not be the one that chose the pairs. Arms
        are matched by name; those that joined later join again at their time. Answers after the
        window of the player do not count. A rule that remembers more than the ledger starts anew.
        Only the policy that made a declaration keeps it.

        Parameters
        ----------
        history : History
            A `History` with the feedback of the player, in ticks or by the clock as it is.

        Returns
        -------
        Player
            The player itself.

        Raises
        ------
        ValueError
            If the player has asked a duel already, or the history does not fit it.

        Notes
        -----
        The guarantee is that of the weaker part. It is "none" if no delay law is given and neither
        a coin nor turns decided the order of the history, and "measured" where turns did, or if the
        history does not say who has chosen its pairs (`History.chosen_by`).
        """
        with self._lock:
            by_clock = self._clock is not None
            check_replay(
                history,
                tick=self.tick,
                has_changed=self._arm_set.has_changed,
                feedback=self.feedback,
                display=getattr(self.policy, "display", "pair"),
                by_clock=by_clock,
            )
            history, past, n_late = fit_history(history, self.arms, self._window)
            is_deciding = isinstance(self._ledger.assumed, EProcess)
            arm_set = ArmSet(history.arms, history.changes, of_all=is_deciding)
            n_places = int((arm_set.joined == 0).sum()) if is_deciding else len(arm_set.shown)
            ledger, rule = self._open(n_places)  # refuses what cannot be
            if self._clock is not None and history.now is not None:
                self._clock.read(history.now)  # refuses one in the future
            if is_deciding:
                ledger, rule = book_deciding(ledger, history, self.policy), self._rule
            else:
                ledger = rebuild_ledger(ledger, history, arm_set)
            self.arms, self._arm_set, self._ledger, self._rule = history.arms, arm_set, ledger, rule
            self._duels = DuelRecords.of(history)
            self._late = n_late
            self._past = past if history.n else None
        return self

    def learned_law(self) -> Empirical | Curve:
        """Return the delay law that was learned so far, for ``delay="learn"``.

        Returns
        -------
        Empirical or Curve
            A `Curve` with a 95 % band for a player that goes by the clock. Its `never` is the share
            of conversions that do not come by the largest age that is learned.

        Raises
        ------
        ValueError
            If the policy does not learn a law, or the feedback is votes.
        """
        if self.feedback == "votes":
            raise InvalidValueError(
                "learned_law needs conversions: with votes no law is needed or learned"
            )
        with self._lock:
            assumed = self._ledger.assumed
            if isinstance(assumed, ByClock) and assumed.learns:
                return learned_curve(assumed)
            if isinstance(assumed, LearnedLaw):
                return Empirical(np.diff(assumed.tau[0, : assumed.tells.size + 1]))
        raise InvalidValueError(
            "learned_law needs a policy with delay='learn': this one does not learn"
        )

    def _error(self) -> float:
        """Return the error of a policy that decides; more, where arms changed unexpectedly.

        Its threshold left no room for changes in ticks, or where a winner was taken for granted.
        """
        share = 1.0
        if self._arm_set.has_changed and self.policy.winner_exists:  # type: ignore[attr-defined]
            share = 2.0
        elif self._arm_set.has_changed and self._clock is None:
            share = 1.1
        return float(self.policy.error) * share  # type: ignore[attr-defined]

    def _order(self) -> str | None:
        """Return the order in which arms are shown; None if a user's policy does not say."""
        order = getattr(self.policy, "order", None)
        order = order if order in ORDERS else None
        return order if self._past is None else self._past.order_until(self.tick, order)

    def _chosen_by(self) -> str:
        """Return who has chosen the pairs, as text."""
        policy = str(self.policy)
        return policy if self._past is None else self._past.chosen_until(self.tick, policy)

    def _declared(self) -> Declaration | None:
        """Return whom a policy that decides has declared; None for any other."""
        eprocess = self._ledger.assumed
        if not isinstance(eprocess, EProcess) or eprocess.verdict[0] != WINNER:
            return None
        return Declaration(
            self.arms[int(eprocess.winner[0])], int(eprocess.declared[0]), str(self.policy)
        )

    def _won(self, winner: Any, first: int, second: int) -> float | None:
        """Return what a vote gives the first arm; None for a conversion."""
        if self.feedback != "votes":
            if winner is not None and not (isinstance(winner, str) and winner == "first"):
                raise InvalidValueError(
                    f"winner must be left out, since only a win of the first is told here: start "
                    f"with feedback='votes' to tell both outcomes, got {winner!r}"
                )
            return None
        if isinstance(winner, str) and winner in OUTCOMES:
            return OUTCOMES[winner]
        is_number = isinstance(winner, numbers.Real) and not isinstance(winner, bool)
        if is_number and winner in (first, second):
            if first == second:
                return 0.5  # its number does not say which of the two places won
            return 1.0 if winner == first else 0.0
        either = f"{first}" if first == second else f"{first} or {second}"
        raise InvalidValueError(
            f"winner must be 'first', 'second' or 'tie', or the number of an arm, {either}, got "
            f"{winner!r}"
        )

    def _now(self, at: Any) -> float | None:
        """Return the time; None in ticks. The caller holds the lock."""
        if self._clock is not None:
            return self._clock.read(at)
        if at is not None:
            raise InvalidValueError(
                'at needs a player that goes by the clock: start it with clock="wall"'
            )
        return None

    def _event_time(self, number: int, at: Any, now: float) -> float:
        """Return when an answer came: `at`, although later times are known already."""
        if at is None:
            return now
        return min(max(timestamps.seconds("at", at), self._duels.asked_at(number)), now)

    def _pending(self) -> NDArray[np.int64] | None:
        """Count the silent duels whose window is still open at the next tick."""
        if self.feedback == "counts":
            return None
        now = None if self._clock is None else self._clock.now
        return self._duels.count_pending(self._window, now)

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            own = ("_duels", "_clock", "_ledger", "_rule", "_rng")
            state = self.__dict__ | {name: copy.deepcopy(self.__dict__[name]) for name in own}
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = forks.lock(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (type(self), __version__), self.__getstate__()

    def __copy__(self) -> Player:
        return copy.deepcopy(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the current standing, as `Standing.plot` does; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; new ones if None.
        """
        return self.standing().plot(ax)

    def _repr_html_(self) -> str:
        from duelay.show import notebook

        return notebook.show_player(self)

    def __repr__(self) -> str:
        how = f", feedback={self.feedback!r}" if self.feedback == "votes" else ""
        how += ", corrects_position=True" if self.corrects_position else ""
        how += ', clock="wall"' if self._clock is not None else ""
        return f"Player({self.policy}, n_arms={self.n_arms}, tick={self.tick}{how})"


def _feedback(policy: Policy, given: str | None) -> str:
    """Return the kind of feedback; the policy's own if none is given."""
    if policy.counts_only:
        why = "its policy hears counts alone"
        given = "counts" if given is None else given
        return check_feedback(given, conversions=why, votes=why)
    given = "conversions" if given is None else given
    check_display(getattr(policy, "display", "pair"), given)
    return check_feedback(given, counts="its policy needs the duel of each conversion")


def _revive(cls: type[Player], version: str) -> Player:
    """Begin to unpickle a player; its state, which need not fit another version, comes after."""
    if version != __version__:
        raise InvalidValueError(
            f"this player was pickled by duelay {version}, and this is duelay {__version__}, whose "
            f"players remember other things: unpickle it with {version}, write its history with "
            "that version, player.history().to_parquet(...), and replay it here"
        )
    return cls.__new__(cls)
