"""A simulation through `ask` and `tell`, call for call."""

from types import SimpleNamespace

import numpy as np
import pytest

import duelay
from duelay.simulation.loops.plain_python import play_player
from duelay.simulation.loops.recorder import new_recorder
from duelay.simulation.world import make_world

CERTAIN = duelay.Problem([[0.5, 1.0, 1.0], [0.0, 0.5, 1.0], [0.0, 0.0, 0.5]])
PAIRS = [(0, 1), (1, 2), (2, 0), (0, 2), (1, 0)]  # in turn: two that are won, one that is lost, ...


class Scripted:
    """A player that asks for pairs in turn and writes down all that it is asked and told."""

    def __init__(self):
        self.calls, self.asked = [], 0

    def ask(self):
        first, second = PAIRS[self.asked % len(PAIRS)]
        self.asked += 1
        self.calls.append("ask")
        return SimpleNamespace(id=self.asked, first=first, second=second)

    def tell(self, duel, winner="first"):
        self.calls.append((duel.id, winner))

    def tell_count(self, n):
        self.calls.append(n)


def calls(horizon, batch, feedback, delay=2):
    """What a player with every answer `delay` ticks late is to meet, one tick after the other."""
    expected = []
    for t in range(1, horizon + 1):
        if (t - 1) % batch == 0:
            for due in range(max(1, t - batch + 1), t + 1):
                born = due - delay
                i, j = PAIRS[(born - 1) % len(PAIRS)]
                if feedback == "counts":
                    expected.append(int(born >= 1 and i < j))
                elif born >= 1 and (i < j or feedback == "votes"):
                    expected.append((born, "first" if i < j else "second"))
        expected.append("ask")
    return expected


@pytest.mark.interpreted
@pytest.mark.parametrize("feedback", ["conversions", "votes", "counts"])
@pytest.mark.parametrize("batch", [1, 2, 4])
@pytest.mark.parametrize("slices", [(12,), (1, 5, 6, 12)])
def test_each_answer_is_told_once_before_the_next_batch_is_asked(feedback, batch, slices):
    is_vote = feedback == "votes"
    world = make_world(CERTAIN, duelay.delays.Constant(2), None, 12, is_vote=is_vote, hold=batch)
    recorder, plays = (
        new_recorder(CERTAIN.gaps, np.array([6, 12])),
        np.zeros((3, 3), dtype=np.int64),
    )
    player, rng, asked = Scripted(), np.random.default_rng(0), []
    for until in slices:
        play_player(player, feedback == "counts", world, recorder, plays, until, rng, asked, batch)
    assert player.calls == calls(12, batch, feedback)
    assert [duel.id for duel in asked] == list(range(1, 13)) and recorder.tick[0] == 12
    expected = np.zeros((3, 3), dtype=np.int64)
    for t in range(12):
        expected[PAIRS[t % len(PAIRS)]] += 1
    np.testing.assert_array_equal(plays, expected)
    np.testing.assert_array_equal(recorder.shown, expected.sum(axis=0) + expected.sum(axis=1))
    assert recorder.regret[1] == pytest.approx((recorder.shown * CERTAIN.gaps).sum() / 2)
