"""What every policy must do, as tests that anyone can hold their own policy to.

    from duelay.testing import PolicyContract

    class TestMine(PolicyContract):
        policy = Mine()

`pytest` then runs them all. They need pytest and nothing else.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from duelay import delays
from duelay.ledger.display_order import ORDERS
from duelay.policies.policy import CompiledPolicy
from duelay.problems import Problem, arithmetic
from duelay.simulation import Setting, simulate
from duelay.simulation.runs import CompiledRun, Job, PlayerRun

__all__ = ["PolicyContract", "compiled_duels", "live_duels"]


def live_duels(
    policy: Any,
    problem: Problem,
    delay: delays.Delay,
    horizon: int,
    seed: int = 0,
    run: int = 0,
    setting: Setting = Setting(),  # noqa: B008, it is frozen
) -> list[tuple[int, int]]:
    """Play one run through `ask` and `tell`.

    With traffic in the setting, each call is made at its time.

    Parameters
    ----------
    policy : Policy
        The policy.
    problem : Problem
        The arms and their preferences.
    delay : Law or ByPair
        The law of the delays.
    horizon : int
        The number of duels.
    seed, run : int
        The seed, and which of its runs to play.
    setting : Setting
        How the run is played, as in `duelay.simulate`.
    """
    job = Job(problem, policy, delay, horizon, np.array([horizon]), setting, seed)
    return _one_by_one(PlayerRun(job, run), horizon)


def compiled_duels(
    policy: Any,
    problem: Problem,
    delay: delays.Delay,
    horizon: int,
    seed: int = 0,
    run: int = 0,
    setting: Setting = Setting(),  # noqa: B008, it is frozen
) -> list[tuple[int, int]]:
    """Return the duels of one run of a compiled policy, played by the simulator's loop.

    Parameters
    ----------
    policy : Policy
        The policy.
    problem : Problem
        The preferences.
    delay : Law or ByPair
        The true delay law.
    horizon : int
        The number of duels.
    seed : int
        The seed of the simulation.
    run : int
        The number of the run, from 0.
    setting : Setting
        How answers arrive.
    """
    job = Job(problem, policy, delay, horizon, np.array([horizon]), setting, seed)
    return _one_by_one(CompiledRun(job, run), horizon)


def _one_by_one(run: CompiledRun | PlayerRun, horizon: int) -> list[tuple[int, int]]:
    """Play duel by duel, to see each."""
    duels = []
    for t in range(1, horizon + 1):
        run.proceed(t)
        duels.append((int(run.recorder.first[0]), int(run.recorder.second[0])))
    return duels


def _same(one: Sequence[Any], other: Sequence[Any], rule: str) -> None:
    """Fail with the rule and the first duel that differs, unless the duels are the same."""
    for number, (a, b) in enumerate(zip(one, other, strict=True)):
        assert a == b, f"{rule}; duel {number} is {a} and {b}"


def _answers(expected: str, answer: Any, told: str) -> None:
    """Fail unless `tell` gave the expected answer."""
    assert answer == expected, f"tell must answer {expected!r} to {told}, got {answer!r}"


def _hash(policy: Any) -> int | None:
    """Return its hash; None for a policy that has none, such as a dataclass that is not frozen."""
    try:
        return hash(policy)
    except TypeError:
        return None


def _does_not_apply(reason: str) -> NoReturn:
    import pytest

    pytest.skip(reason)


class PolicyContract:
    """Subclass it, give it a `policy`, and pytest finds the tests."""

    policy: Any
    horizon = 200
    problem = arithmetic(4, 0.15)

    def start(self, seed: int = 0, arms: Any = 4) -> Any:
        """Start the policy.

        Parameters
        ----------
        seed : int
            The seed of the player.
        arms : int or sequence of str
            The arms, or their number.
        """
        return self._ready().start(arms, seed)

    def _ready(self) -> Any:
        """The policy, with a horizon if it needs one; its warning of a short one is ignored."""
        if not hasattr(self.policy, "for_horizon"):
            return self.policy
        warnings.filterwarnings("ignore", "horizon .* is too short")
        return self.policy.for_horizon(self.horizon)

    @property
    def _counts_only(self) -> bool:
        return bool(getattr(self.policy, "counts_only", False))

    def _tell(self, player: Any, duels: list[Any]) -> None:
        """Tell conversions, each by itself or by their number."""
        if self._counts_only:
            player.tell_count(len(duels))
        else:
            for duel in duels:
                player.tell(duel)

    def _play(self, player: Any, n: int, turned: bool = False) -> list[Any]:
        """Ask n duels; the smaller arm wins, and conversions are told every seven asks."""
        duels, waiting = [], []
        for _ in range(n):
            duel = player.ask()
            duels.append(duel)
            if duel.first < duel.second:
                waiting.append(duel)
            if len(duels) % 7 == 0:
                self._tell(player, waiting[::-1] if turned else waiting)
                waiting = []
        return duels

    def test_a_policy_is_a_recipe_that_prints_and_hashes(self) -> None:
        """Recipes are compared, printed and used as keys."""
        again = copy.deepcopy(self.policy)
        hashes = _hash(again), _hash(self.policy)
        assert again == self.policy and None not in hashes and hashes[0] == hashes[1], (
            "a copy of a policy must be equal to it and have the same hash: make its class a "
            "dataclass(frozen=True) with fields that hash"
        )
        assert str(again) == str(self.policy) != object.__repr__(self.policy), (
            f"a policy must print as its parameters, the same for a copy, got {self.policy} and "
            f"{again}"
        )

    def test_duels_are_numbered_pairs_of_arms(self) -> None:
        """Ids count up from 0; arms are indices."""
        for arms in (2, 3, 11):
            duels = self._play(self.start(arms=arms), 60)
            ids = [duel.id for duel in duels]
            assert ids == list(range(60)), f"ids must be 0, 1, 2, ... in this order, got {ids}"
            wrong = [d for d in duels if not (0 <= d.first < arms and 0 <= d.second < arms)]
            assert not wrong, f"first and second must be from 0 to {arms - 1}, got {wrong[0]}"

    def test_the_same_seed_gives_the_same_duels(self) -> None:
        """A seed reproduces a run."""
        n = self.horizon
        _same(
            self._play(self.start(5), n),
            self._play(self.start(5), n),
            "the same seed must give the same duels: all that is left to chance must come from the "
            "generator that a player is given",
        )

    def test_players_of_one_policy_do_not_disturb_each_other(self) -> None:
        """What a player remembers is its own, and not its policy's."""
        one, other, together = self.start(12), self.start(13), []
        for _ in range(9):
            together += self._play(one, 7)
            self._play(other, 7)
        _same(
            together,
            self._play(self.start(12), 63),
            "a player must choose the same duels beside another one as alone: what it remembers "
            "must be its own, and not its policy's",
        )

    def test_the_order_is_as_the_policy_says(self) -> None:
        """By coin both arms of a pair are first equally often; in turns they alternate."""
        order = getattr(self.policy, "order", None)
        if order not in ORDERS or order == "champion":
            _does_not_apply("it shows its champion first, or decides by itself")
        shown = np.zeros((4, 4))
        for duel in self._play(self.start(14), 2 * self.horizon):
            shown[duel.first, duel.second] += 1
        ahead = shown - shown.T
        if order == "alternate":
            assert abs(ahead).max() <= 1, (
                "with order='alternate' the two arms of a pair must be first in turns, but one was "
                f"first {abs(ahead).max():.0f} times more than the other"
            )
        else:  # four standard errors
            n = shown.sum() - np.trace(shown)
            lead = abs(np.triu(ahead).sum())
            assert lead <= 4 * np.sqrt(n), (
                "with order='coin' a fair coin must decide who is first, but the lower arm and the "
                f"higher one differ by {lead:.0f} in {n:.0f} duels"
            )

    def test_names_of_arms_change_nothing(self) -> None:
        """Arms are known by their place."""
        named = self.start(1, arms=["d", "c", "b", "a"])
        _same(
            self._play(named, 100),
            self._play(self.start(1), 100),
            "the names of the arms must not change the duels: arms are known by their place",
        )

    def test_conversions_told_in_any_order_give_the_same_duels(self) -> None:
        """Between two asks the order of conversions does not matter."""
        forwards, backwards = self.start(2), self.start(2)
        n = self.horizon
        _same(
            self._play(forwards, n),
            self._play(backwards, n, turned=True),
            "conversions told between two asks must give the same duels in any order",
        )

    def test_a_conversion_told_twice_counts_once(self) -> None:
        """A repeated conversion is recognised, and changes nothing."""
        if self._counts_only:
            _does_not_apply("conversions are anonymous")
        once, twice = self.start(3), self.start(3)
        for _ in range(100):
            duel = once.ask()
            other = twice.ask()
            assert other == duel, (
                "a conversion told again must change nothing, but the next duels differ: "
                f"{duel} if told once, {other} if told twice"
            )
            if duel.id % 3 == 0:
                _answers("counted", once.tell(duel), "a conversion told for the first time")
                _answers("counted", twice.tell(duel), "a conversion told for the first time")
                _answers("repeated", twice.tell(duel), "a conversion told again")
                _answers("repeated", twice.tell(duel.id), "a conversion told again by its id")

    def test_a_late_conversion_is_not_counted(self) -> None:
        """A conversion at age M counts, one at age M + 1 does not."""
        window = getattr(self.policy, "window", None)
        if window is None or window > 5000:
            _does_not_apply("no window, or a long one")
        player = self.start(4)
        duels = [player.ask() for _ in range(window + 1)]
        _answers("counted", player.tell(duels[1]), "a conversion as old as the window")
        _answers("late", player.tell(duels[0]), "a conversion one tick older than the window")

    def test_a_player_never_told_anything_goes_on(self) -> None:
        """A law that never answers is no reason to stop."""
        player = self.start(6)
        ids = [player.ask().id for _ in range(self.horizon)]
        assert ids == list(range(self.horizon)), (
            f"a player that is told nothing must go on asking: ids must be 0, 1, 2, ..., got {ids}"
        )

    def test_an_unknown_duel_raises(self) -> None:
        """A conversion of a duel that was never asked is refused."""
        if self._counts_only:
            _does_not_apply("conversions are anonymous")
        player = self.start(7)
        duel = player.ask()
        other = duel._replace(first=duel.second, second=(duel.second + 1) % 4)
        for unknown in (duel.id + 1, -1, other):
            try:
                player.tell(unknown)
            except LookupError as error:
                assert "no duel" in str(error), (
                    f"the error for an unknown duel must say 'no duel', got {str(error)!r}"
                )
            else:
                raise AssertionError(
                    f"tell must raise a LookupError for a duel that was never asked, but took "
                    f"{unknown}; only {duel} was asked"
                )

    def test_a_player_pickles_and_copies_and_goes_on_alike(self) -> None:
        """A stored player resumes with the same duels, and a copy has a life of its own."""
        player = self.start(8)
        self._play(player, 64)
        stored, copied = pickle.dumps(player), copy.copy(player)
        ahead = self._play(player, 50)
        _same(
            self._play(pickle.loads(stored), 50),
            ahead,
            "a player read back from a pickle must go on with the same duels",
        )
        _same(
            self._play(copied, 50),
            ahead,
            "a copy of a player must go on with the same duels, whatever the player does meanwhile",
        )

    def test_live_and_simulated_runs_agree_duel_for_duel(self) -> None:
        """The simulator runs the same functions as the live player."""
        policy = self._ready()
        if not isinstance(policy, CompiledPolicy):
            _does_not_apply("not a compiled policy")
        for law in (delays.Constant(1), delays.Geometric(0.1), delays.Constant(60)):
            there = compiled_duels(policy, self.problem, law, self.horizon, seed=9)
            _same(
                live_duels(policy, self.problem, law, self.horizon, seed=9),
                there,
                f"a live player must choose the duels of the simulator (delay {law})",
            )

    def test_simulated_numbers_do_not_depend_on_workers(self) -> None:
        """Any number of threads gives the same numbers; so does a horizon of 1."""
        policy = self._ready()
        for horizon in (1, self.horizon):
            one, two = (
                simulate(
                    self.problem,
                    policy,
                    delay=delays.Never(0.2, delays.Geometric(0.2)),
                    horizon=horizon,
                    runs=3,
                    seed=10,
                    workers=workers,
                )
                for workers in (1, 3)
            )
            same = np.array_equal(one.regret, two.regret) and np.array_equal(one.plays, two.plays)
            assert same, (
                "1 and 3 workers must give the same regret and plays: runs must share no memory"
            )
            assert one.plays.sum() == 3 * horizon, (
                f"every tick must have one duel: {3 * horizon} in all, got {one.plays.sum()}"
            )

    def test_the_standing_adds_up(self) -> None:
        """Counts are those of the duels; the leader is an arm; asking for it changes nothing."""
        player = self.start(11)
        if not hasattr(player, "standing"):
            _does_not_apply("its players have no standing")
        begun = player.standing().plays.sum()
        assert begun == 0, f"the standing of a new player must count no plays, got {begun}"
        duels = self._play(player, 70)
        standing = player.standing()
        counts = np.zeros((4, 4), dtype=np.int64)
        for duel in duels:
            counts[duel.first, duel.second] += 1
        assert np.array_equal(standing.plays, counts), (
            f"standing().plays must count the duels asked, by first and second:\n{counts}\ngot\n"
            f"{standing.plays}"
        )
        assert 0 <= standing.leader < 4, (
            f"standing().leader must be an arm from 0 to 3, got {standing.leader}"
        )
        assert standing.mean.shape == (4, 4), (
            f"standing().mean must have the shape (4, 4), got {standing.mean.shape}"
        )
        missing = [arm for arm in standing.arms if str(arm) not in str(standing)]
        assert not missing, f"a standing must print every arm, but lacks {missing}"
        aside = copy.copy(player)
        aside.standing()
        _same(
            self._play(aside, 30),
            self._play(player, 30),
            "to ask for a standing must not change the duels that follow",
        )
