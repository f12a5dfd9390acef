"""Logs of experiments whose arms came and went, or that declared a winner."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import duelay
from duelay import History
from duelay.estimates import report

MU = [[0.5, 0.35, 0.5, 0.25], [0.65, 0.5, 0.6, 0.4], [0.5, 0.4, 0.5, 0.3], [0.75, 0.6, 0.7, 0.5]]


def play(player, n, rng, start):
    """Visitors who answer after five minutes on average, one in five never."""
    due, now = [], start
    for _ in range(n):
        now += 10.0
        for at, duel in sorted(due, key=lambda one: one[0]):
            if at <= now:
                player.tell(duel, at=at)
        due = [one for one in due if one[0] > now]
        duel = player.ask(at=now)
        if rng.random() < 0.8 * MU[duel.first][duel.second]:
            due.append((now + rng.exponential(300.0), duel))
    return now


@pytest.fixture(scope="module")
def declared():
    """A history in which d joined, was best, and was retired; b is declared."""
    rng = np.random.default_rng(0)
    player = duelay.Decide(window="1h").start(["a", "b", "c"], 0, clock="wall")
    now = play(player, 150, rng, 1_700_000_000.0)
    player.add_arm("d")
    now = play(player, 300, rng, now)
    player.retire_arm("d")
    while player.standing().winner is None:
        now = play(player, 250, rng, now)
    assert player.standing().winner == 1
    return player.history()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_estimate_of_an_export_agrees_with_the_experiment(declared, tmp_path, ending):
    path = tmp_path / f"duels.{ending}"
    getattr(declared, f"to_{ending}")(path)
    found = duelay.estimate(path)
    b, d = found.arms.index("b"), found.arms.index("d")
    assert found.winner == found.leader == b and found.headline.startswith("b wins: declared")
    assert "at most 5 % of experiments" in found.headline
    assert np.flatnonzero(found.candidates).tolist() == [b]
    assert d not in found.ranking and found.chances[d] == 0.0 and found.retired == ("d",)
    assert "retired, and left out of the ranking: d" in str(found)
    beats = [row["beats"] for row in found.as_data()["ranking_table"]]
    assert beats[0] == 2 and sum(beats) == 3  # of the two others that are there
    assert "Retired, and left out of the ranking: d." in report.compose(found, set())
    data = json.loads(json.dumps(found.as_data()))
    assert (data["winner"], data["candidates"], data["retired"]) == ("b", ["b"], ["d"])
    assert [row["arm"] for row in data["ranking_table"]] == [found.arms[k] for k in found.ranking]


def test_duels_that_the_store_has_compacted_are_counted(declared):
    found = duelay.estimate(dataclasses.replace(declared, n_earlier=1000))
    assert f"declared after {1000 + declared.declared.tick:,} duels" in found.headline
    assert "1,000 earlier duels are not in the log" in str(found)


@pytest.mark.parametrize("order", ["coin", None])
def test_a_retired_arm_neither_leads_nor_is_a_candidate_nor_prevents_a_winner(declared, order):
    open_ = dataclasses.replace(declared, declared=None, order=order)
    found = duelay.estimate(open_)
    assert found.leader == 1 and not found.candidates[3] and 3 not in found.ranking
    assert "d" not in found.headline.split()
    if order == "coin":
        assert found.winner == 1 and found.evidence.lacks[1, 3] == 0.0


def test_a_declaration_of_a_policy_that_nobody_knows_is_honoured():
    log = History(n_arms=2, first=[0, 1], second=[1, 0], delay=[3.0, np.nan], at=[1e9, 1e9 + 5],
                  first_won=[1.0, np.nan], declared=("1", 2, "my-policy:a=3"))  # fmt: skip
    found = duelay.estimate(log)
    assert found.winner == 1 and "declared by my-policy:a=3" in found.headline
