"""A tick's bookkeeping, by hand."""

import numpy as np

from duelay import delays
from duelay.ledger import assume, for_votes, open_ledger
from duelay.ledger.delay_models.base import FOREVER
from duelay.problems import Problem
from duelay.simulation.loops.recorder import (
    advance_to,
    hear_due,
    new_recorder,
    record_shown,
    repeat,
)
from duelay.simulation.world import duel, make_world

CERTAIN = Problem([[0.5, 1.0, 1.0], [0.0, 0.5, 1.0], [0.0, 0.0, 0.5]])


def test_a_vote_is_for_the_arm_that_won():
    world = make_world(CERTAIN, delays.Constant(1), None, 9, is_vote=True)
    ledger = for_votes(open_ledger(assume(None, None, 3), 3))
    recorder = new_recorder(CERTAIN.gaps, np.array([9]))
    duel(world, 2, 1, 1, np.random.default_rng(0))  # the second wins
    hear_due(ledger, False, world, recorder, 2, 2, FOREVER)
    assert ledger.estimates().wins[[1, 2], [2, 1]].tolist() == [1, 0]


def test_an_answer_as_old_as_the_window_counts_and_an_older_one_does_not():
    for window, counted in ((4, 0), (5, 1)):
        world = make_world(CERTAIN, delays.Constant(2), None, 20, hold=9)
        ledger = open_ledger(assume(None, None, 3), 3)
        recorder = new_recorder(CERTAIN.gaps, np.array([20]))
        duel(world, 0, 1, 3, np.random.default_rng(0))
        hear_due(ledger, False, world, recorder, 5, 8, window)  # due at 5, heard at 8: age 5
        assert ledger.conversions.sum() == counted and world.waiting[0] == 0


def test_pairs_are_taken_down_at_each_checkpoint_be_it_the_only_one():
    plays = np.zeros((3, 3), dtype=np.int64)
    recorder = new_recorder(CERTAIN.gaps, np.array([5]), with_pairs=True)
    repeat(recorder, plays, 0, 2, 4)
    assert recorder.passed[0] == 0 and not recorder.pairs.any()
    repeat(recorder, plays, 1, 2, 3)
    assert recorder.tick[0] == 7 and recorder.passed[0] == 1
    assert recorder.pairs[0].tolist() == [[0, 0, 4], [0, 0, 1], [0, 0, 0]]
    assert plays.tolist() == [[0, 0, 4], [0, 0, 3], [0, 0, 0]]
    assert recorder.shown.tolist() == [4, 3, 7]
    assert recorder.regret.tolist() == [(4 * (0 + 0.5) + (0.5 + 0.5)) / 2]


def test_regret_is_taken_down_at_its_checkpoint_alone():
    recorder = new_recorder(CERTAIN.gaps, np.array([2, 3]))
    plays = np.zeros((3, 3), dtype=np.int64)
    for t, (i, j) in enumerate([(0, 1), (1, 2), (2, 2), (0, 2)], start=1):
        record_shown(recorder, i, j, 1)
        assert (recorder.first[0], recorder.second[0]) == (i, j)
        advance_to(recorder, t, plays)
    assert recorder.regret.tolist() == [0.75, 1.25]
    assert (recorder.tick[0], recorder.passed[0], recorder.pairs.size) == (4, 2, 0)
