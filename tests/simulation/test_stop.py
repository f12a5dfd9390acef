"""Runs that end when a winner is declared."""

import csv
import dataclasses

import numpy as np
import pytest

import duelay
from duelay import problems
from duelay.simulation.result import PATHS, STOPS, write_paths, write_stops
from helpers import Live

PROBLEM = problems.Problem([[0.5, 0.9, 0.8], [0.1, 0.5, 0.7], [0.2, 0.3, 0.5]])


def stop(policy=None, problem=PROBLEM, **options):
    options = {"delay": "geometric:0.2", "horizon": 3000, "runs": 3, "seed": 2, "stop": 0.05,
               **options}  # fmt: skip
    return duelay.simulate(problem, policy or duelay.Decide(), **options)


def test_a_run_ends_when_the_standing_declares():
    result = stop(runs=1)
    from duelay.simulation import streams
    from duelay.simulation.loops import plain_python
    from duelay.simulation.loops.recorder import new_recorder
    from duelay.simulation.world import make_world

    world_rng, policy_rng = streams(2, 0)
    player = duelay.Decide().start(3, policy_rng)
    world = make_world(PROBLEM, duelay.delays.Geometric(0.2), None, 3000)
    recorder, asked = new_recorder(PROBLEM.gaps, np.array([3000])), []
    plays, t = np.zeros((3, 3), dtype=np.int64), 0
    while player.standing().winner is None:
        t += 1
        plain_python.play_player(player, False, world, recorder, plays, t, world_rng, asked)
    assert result.stopped[0] == t - 1  # the last ask looked, and would have been one too many
    assert result.leader[0] == player.standing().winner == 0
    plays[asked[-1].first, asked[-1].second] -= 1
    np.testing.assert_array_equal(result.plays[0], plays)
    assert player.standing().headline.startswith(f"0 wins: declared after {t - 1} duels")
    assert player.standing().evidence.declared == t - 1


def test_regret_stands_still_after_the_end():
    result = stop(checkpoints=100)
    assert (result.stopped < 2000).all()
    for run in range(3):
        after = result.regret[run, result.t >= result.stopped[run]]
        assert (after == result.final[run]).all() and len(after) > 10
        before = result.regret[run, result.t < result.stopped[run]]
        assert (before < result.final[run]).all()
    np.testing.assert_array_equal(result.plays.sum(axis=(1, 2)), result.stopped)


def test_nobody_declared_is_the_horizon_and_one():
    result = stop(horizon=30)
    assert (result.stopped == 31).all() and not result.is_declared.any()
    assert not result.is_wrong.any()
    assert "0% declared, 0.0% wrong, after >31 duels" in repr(result)


def test_a_problem_without_a_winner_may_be_stopped():
    result = stop(problem=problems.cyclic(3, 0.2), horizon=500)
    assert np.isnan(result.final).all() and not result.is_declared.any()
    assert result.nobody.all()
    assert not stop(problem=problems.cyclic(3, 0.2), horizon=50).nobody.any()  # too early to say
    assert not stop().nobody.any()
    with pytest.raises(duelay.NoWinnerError):
        stop(problem=problems.cyclic(3, 0.2), stop=None)


def test_who_is_declared_but_does_not_win_is_wrong():
    result = stop()
    assert result.is_declared.all() and not result.is_wrong.any()
    wrong = dataclasses.replace(result, leader=np.array([1, 0, 2]))
    assert wrong.is_wrong.tolist() == [True, False, True]
    nobody = dataclasses.replace(result, problem=problems.cyclic(3, 0.2))
    assert nobody.is_wrong.all()


def test_rr_db_delay_declares_the_arm_that_is_left():
    result = stop(policy=duelay.RRDBDelay(delay="geometric:0.2"))
    assert result.is_declared.all() and (result.leader == 0).all()


def test_stop_is_the_policys_own_error():
    with pytest.raises(
        ValueError, match=r"own error, 0.1 of decide:error=0.1, got 0.05: take decide$"
    ):
        stop(policy=duelay.Decide(error=0.1))
    with pytest.raises(ValueError, match=r"got 0.1: take rr-db-delay:.*delta=0.1$"):
        stop(policy=duelay.RRDBDelay(delay="geometric:0.2"), stop=0.1)
    with pytest.raises(ValueError, match="stop needs"):
        stop(policy=duelay.RUCB())
    with pytest.raises(ValueError, match="stop needs"):
        stop(policy=Live(duelay.Decide()))
    with pytest.raises(ValueError, match="stop must be"):
        stop(stop=2)
    with pytest.raises(ValueError, match="stop must"):
        stop(setting=duelay.Setting(stop=0.1))
    with pytest.raises(ValueError, match="there is no stopping rule for it yet"):
        stop(setting=duelay.Setting(target="borda"))


def test_stops_do_not_depend_on_the_workers_or_on_the_batches_of_a_setting():
    one = stop(runs=4, workers=1)
    two = stop(runs=4, workers=2)
    np.testing.assert_array_equal(one.stopped, two.stopped)
    batched = stop(runs=4, setting=duelay.Setting(batch=50))
    assert batched.is_declared.all() and (batched.stopped != one.stopped).any()


def test_a_stop_may_stand_in_the_setting():
    result = stop(stop=None, setting=duelay.Setting(stop=0.05))
    np.testing.assert_array_equal(result.stopped, stop().stopped)
    assert str(result.setting) == "stop=0.05"


def test_stops_are_a_table_with_a_row_a_run(tmp_path):
    results = [stop(horizon=200), stop(policy=duelay.RRDBDelay(delay="geometric:0.2"))]
    write_stops(results, tmp_path / "stops.csv")
    with (tmp_path / "stops.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(STOPS) and len(rows) == 6
    for run in range(3):
        assert int(rows[run]["stopped"]) == results[0].stopped[run]
        is_declared = results[0].stopped[run] <= 200
        assert rows[run]["declared"] == ("0" if is_declared else "")
        assert rows[run]["wrong"] == "False"
    assert rows[3]["label"] == "rr-db-delay" and rows[3]["declared"] == "0"


def test_paths_of_evidence_are_a_table_that_ends_at_the_line(tmp_path):
    result = stop()
    assert len(result.paths) == 3 and result.paths[0].declared == result.stopped[0]
    write_paths([result], tmp_path / "evidence.csv")
    with (tmp_path / "evidence.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["run"] == "1"]
    assert list(rows[0]) == list(PATHS) and rows[0]["t"] == "0"
    last = {
        row["arm"]: float(row["evidence"]) for row in rows if int(row["t"]) == result.stopped[1]
    }
    assert last["0"] >= 3 / 0.05 > last["1"] and set(last) == {"0", "1", "2"}
    assert stop(stop=None).paths == ()
