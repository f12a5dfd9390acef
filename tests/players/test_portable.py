"""A player whose arms come and go is the same after its history was written, read and replayed."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import duelay
from duelay import History
from duelay.ledger.evidence.eprocess import EProcess
from duelay.ledger.evidence.winner_threshold import needed

EPOCH = 1.7e9
NAMES = ("a", "b", "c", "d", "e", "f")
FIRST = NAMES[:3]
POLICIES = {
    "decides": duelay.Decide(error=0.3),
    "decides, and a winner exists": duelay.Decide(error=0.3, winner_exists=True),
    "decides with a window": duelay.Decide(error=0.3, window="90s"),
    "learns": duelay.DoubleThompson(delay="learn"),
    "saves regret": duelay.RMED(order="alternate"),
}
KEPT = (
    "wealth", "best", "kappa", "wins", "n", "lead", "path", "level", "winner_exists",
    "has_changed", "winner", "n_booked", "n_answered", "n_open",
)  # fmt: skip
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(1, 6)),
        st.tuples(st.just("play"), st.integers(5, 40)),
        st.tuples(st.just("tell"), st.integers(0, 30)),
        st.tuples(st.just("add"), st.sampled_from(NAMES)),
        st.tuples(st.just("retire"), st.sampled_from(NAMES)),
        st.tuples(st.just("move"), st.sampled_from(["parquet", "csv", "memory"])),
    ),
    min_size=4,
    max_size=25,
)


class Program:
    """A program with a player, which it may move elsewhere; no two calls at one time."""

    def __init__(self, policy, feedback, folder):
        self.policy, self.feedback, self.folder, self.now = policy, feedback, folder, EPOCH
        self.player = policy.start(FIRST, seed=0, feedback=feedback, clock="wall")
        self.joined, self.present, self.has_changed = dict.fromkeys(FIRST, 0), set(FIRST), False

    def tick(self):
        self.now += 0.75
        return self.now

    def step(self, what, with_):
        if what == "ask":
            for _ in range(with_):
                self.player.ask(at=self.tick())
        elif what == "play":
            for _ in range(with_):
                self.answer(self.player.ask(at=self.tick()))
        elif what == "tell" and self.player.tick:
            number = max(0, self.player.tick - 1 - with_)
            self.answer(self.player._duels.find(number), always=True)
        elif what == "add":
            self.player.add_arm(with_)
            self.has_changed |= with_ not in self.present
            self.joined.setdefault(with_, max(self.joined.values()) + 1)
            self.present.add(with_)
        elif what == "retire" and with_ in self.joined and len(self.present) > 2:
            self.player.retire_arm(with_)
            self.has_changed |= with_ in self.present
            self.present.discard(with_)
        elif what == "move":
            self.move(with_)

    def answer(self, duel, always=False):
        """Tell that the arm of the larger name has won; a win of the second is silent."""
        number = duel if isinstance(duel, int) else duel.id
        i, j = self.player._duels.arms_of(number)
        first_won = self.player.arms[i] >= self.player.arms[j]
        if self.feedback == "votes":
            self.player.tell(number, "first" if first_won else "second", at=self.tick())
        elif first_won or always:
            self.player.tell(number, at=self.tick())

    def move(self, way):
        before, history = self.player, self.player.history()
        if way == "parquet":
            history.to_parquet(self.folder / "duels.parquet")
            history = History.from_parquet(self.folder / "duels.parquet")
        elif way == "csv" and history.n:
            history.to_csv(self.folder / "duels.csv")
            told = {
                name: getattr(history, name)
                for name in ("window", "order", "arms", "now", "chosen_by")
            }
            history = History.from_csv(self.folder / "duels.csv", **told)
        self.player = self.policy.start(FIRST, seed=1, feedback=self.feedback, clock="wall")
        self.player.replay(history)
        assert_same_history(self.player.history(), before.history())
        assert_same_standing(self.player, before)

    def check_bookkeeping(self):
        """The thresholds are those that the page promises, by the changes alone."""
        player = self.player
        assert set(player.arms) == set(self.joined)
        standing = player.standing()
        assert [self.joined[arm] for arm in player.arms] == standing.joined.tolist()
        assert [arm in self.present for arm in player.arms] == standing.present.tolist()
        eprocess = player._ledger.assumed
        if not isinstance(eprocess, EProcess):
            return
        error, k0 = self.policy.error, len(FIRST)
        assert eprocess.winner_exists == (self.policy.winner_exists and not self.has_changed)
        assert player._error() == error * (
            2 if self.policy.winner_exists and self.has_changed else 1
        )
        if eprocess.winner_exists:
            level = math.exp(eprocess.level)
            assert 1 / level + 2 / (level * (level - 1)) == pytest.approx(error)
            return
        more = {arm: n * (n + 1) if n else 1 for arm, n in self.joined.items()}
        for i, one in enumerate(player.arms):
            own = (k0 + 1) / (0.9 * error) * more[one]  # of three first arms
            owes = any(
                other not in self.present and eprocess.best[i, j] < math.log(own)
                for j, other in enumerate(player.arms)
                if j != i
            )
            for j, other in enumerate(player.arms):
                over = (k0 + 1) ** 2 / (0.1 * error) * more[one] * more[other]
                want = over if owes else own
                assert needed(eprocess, i, j) == pytest.approx(math.log(want))


def assert_same_history(found, wanted):
    for name in ("first", "second", "delay", "first_won", "at"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)
    for name in ("arms", "window", "feedback", "order", "now", "chosen_by", "changes", "declared"):
        assert getattr(found, name) == getattr(wanted, name), name


def assert_same_standing(player, before):
    found, wanted = player.standing(), before.standing()
    assert player.arms == before.arms
    for name in ("plays", "conversions", "pending", "present", "joined", "candidates", "active"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)
    for name in ("mean", "lower", "upper", "chances"):
        one, other = getattr(found, name), getattr(wanted, name)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=name)
    for name in ("winner", "leader", "error", "guarantee", "duels_left", "headline", "told"):
        assert getattr(found, name) == getattr(wanted, name), name
    if isinstance(before._ledger.assumed, EProcess):
        one, other = player._ledger.assumed, before._ledger.assumed
        for name in KEPT:
            np.testing.assert_allclose(
                getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-9, err_msg=name
            )
        assert found.evidence.declared == wanted.evidence.declared


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("feedback", ["conversions", "votes"])
@pytest.mark.parametrize("kind", POLICIES)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
@example(steps=[("play", 40), ("move", "parquet"), ("play", 9), ("move", "csv")])
@example(steps=[("add", "d"), ("play", 40), ("move", "csv"), ("retire", "b"), ("move", "parquet")])
@example(
    steps=[("ask", 6), ("retire", "a"), ("tell", 2), ("move", "csv"), ("add", "a"), ("play", 20)]
)
@example(
    steps=[("play", 20), ("add", "e"), ("tell", 3), ("retire", "c"), ("play", 30), ("add", "c")]
)
def test_whoever_comes_and_goes_a_moved_player_stands_where_it_stood(
    kind, feedback, steps, tmp_path
):
    program = Program(POLICIES[kind], feedback, tmp_path)
    for step in steps:
        program.step(*step)
        program.check_bookkeeping()
    program.step("move", "memory")
    program.check_bookkeeping()
