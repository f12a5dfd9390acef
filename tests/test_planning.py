"""`plan`: what it simulates, and what it says of it."""

import csv
import math
import pickle

import numpy as np
import pytest

import duelay
from duelay.planning import Plan, PlannedWorld, simulated
from duelay.planning.report import PlanReport
from duelay.planning.simulated import RatesProblem

FEW = {"delay": "exponential:1h", "horizon": "2w", "progress": False}


def small(rates=(0.3, 0.6), **options):
    options = {**FEW, "visitors_per_day": 60, "runs": 3, **options}
    if "preferences" in options:
        rates = None
    return duelay.plan(rates, **options)


def test_the_regret_of_rates_is_the_conversions_that_are_lost():
    problem = RatesProblem.from_rates([0.05, 0.06, 0.7])
    assert problem.gaps_for("condorcet") == pytest.approx([0.65, 0.64, 0.0])
    assert problem.winners() == (2,) and RatesProblem.from_rates([0.1, 0.1]).winners() == ()


def test_a_plan_of_rates_has_the_evidence_of_an_experiment_that_shows_one_arm(monkeypatch):
    used = []
    simulate = simulated.simulate

    def noted(problem, policy, **options):
        used.append((problem.rates, policy.display))
        return simulate(problem, policy, **options)

    monkeypatch.setattr(simulated, "simulate", noted)
    small(runs=2, horizon="1d")
    assert [display for _, display in used] == ["one", "one"]
    assert used[0][0].tolist() == [0.3, 0.6] and used[1][0].tolist() == [0.3, 0.3]
    used.clear()
    small(preferences=0.2, runs=2, horizon="1d")
    assert used == [(None, "pair")] * 2
    copy = pickle.loads(pickle.dumps(RatesProblem.from_rates([0.3, 0.6])))
    assert copy.gaps_for("condorcet") == pytest.approx([0.3, 0.0])


def test_delays_are_drawn_from_the_law_that_is_stated():
    law = duelay.delays.parse("log-normal:6h,1")
    drawn = simulated._Tabulated.of(law).sample(20_000, np.random.default_rng(0))
    shares = law.cdf(np.sort(drawn))
    assert np.abs(shares - np.arange(20_000) / 20_000).max() < 1.95 / math.sqrt(20_000)
    never = simulated._Tabulated.of(duelay.delays.parse("never:0.25,exponential:1h"))
    share = np.isinf(never.sample(20_000, np.random.default_rng(0))).mean()
    assert abs(share - 0.25) < 4 * math.sqrt(0.25 * 0.75 / 20_000)


@pytest.mark.long
@pytest.mark.kernels
def test_a_plan_counts_the_runs_of_simulate():
    """The same simulation, counted by hand."""
    planned = small(margin="50%", runs=4, seed=2)
    margin = 0.5 / (2 * 2.5)
    for world, rates in zip(planned.worlds, [(0.3, 0.6), (0.3, 0.3)], strict=True):
        result = duelay.simulate(
            RatesProblem.from_rates(rates),
            duelay.Decide(margin=margin, window="14d", self_duels=False, display="one"),
            delay=simulated._Tabulated.of(duelay.delays.parse("exponential:1h")),
            traffic="poisson:24m", horizon=840, runs=4, seed=2, stop=0.05, checkpoints=1,
            setting=duelay.Setting(progress=False, cautious=False),
        )  # fmt: skip
        assert world.verdict == result.verdicts
        decided = result.is_declared
        assert (np.isfinite(world.days) == decided).all()
        assert np.allclose(world.days[decided], result.stopped_after[decided] / 86_400)
        shown = result.plays.sum(axis=0).sum(axis=1)
        assert shown.sum() == result.plays.sum()
        lost = result.plays @ np.ones(2) + np.ones(2) @ result.plays  # an arm's share: one half
        assert np.allclose(world.lost, lost @ (max(rates) - np.array(rates)) / 2)
    assert planned.stated.share("winner") == 1.0 and not planned.stated.is_false.any()
    assert "winner" in planned.stated.verdict and planned.equal.name == "all equal"


def test_quantiles_and_shares_count_the_undecided():
    days = np.array([3.0, np.inf, 1.0, 8.0])
    verdict = ("winner", "undecided", "equivalent", "winner")
    world = PlannedWorld("as stated", days, verdict, ("a", "", "a", "b"), days == 8.0, days)
    assert [world.quantile(q) for q in (0.25, 0.5, 0.75, 1.0)] == [1.0, 3.0, 8.0, math.inf]
    assert world.share() == 0.75 and world.share(by=3.0) == 0.5
    assert world.share("winner", by=3.0) == 0.25 and world.share("winner") == 0.5
    assert world.share("undecided", by=2.0) == 0.75 and world.share("undecided") == 0.25
    plan = Plan("rates", duelay.delays.Duration("2w"), (), (world, world), "lost conversions")
    assert "more than 14" in str(plan)
    with pytest.raises(ValueError, match="verdict"):
        world.share("tie")


def test_what_cannot_be_decided_within_the_horizon_is_said():
    planned = small((0.30, 0.31), visitors_per_day=10, runs=2)
    assert planned.stated.share("undecided") == planned.equal.share("undecided") == 1.0
    assert math.isinf(planned.stated.quantile(0.1))
    assert "100 % of experiments are undecided after 14d" in str(planned)
    for world in PlanReport.of(planned).worlds:
        assert world.words.startswith("No experiment has a verdict within 14 days.")


def test_the_same_seed_gives_the_same_plan():
    one, again, other = (small(seed=seed) for seed in (1, 1, 2))
    assert (one.stated.days == again.stated.days).all() and str(one) == str(again)
    assert (one.stated.days != other.stated.days).any()


def test_a_long_horizon_is_simulated_only_as_far_as_needed(monkeypatch):
    asked = []
    simulate = simulated.simulate

    def counted(problem, policy, **options):
        asked.append(options["horizon"])
        return simulate(problem, policy, **options)

    monkeypatch.setattr(simulated, "simulate", counted)
    monkeypatch.setattr(simulated, "_FIRST_STAGE", 100)
    planned = small(visitors_per_day=100, runs=2)
    assert planned.stated.share() == 1.0
    assert asked == [100, 600, 100, 600, 1400]  # the equal arms have no end


def test_all_rates_equal_is_one_world():
    planned = small((0.3, 0.3), runs=2)
    assert len(planned.worlds) == 1 and planned.stated is planned.equal
    assert planned.equal.name == "all equal"


@pytest.mark.parametrize("preferences", [0.2, "0.2", [[0.5, 0.3], [0.7, 0.5]], "arithmetic:2,0.2"])
def test_preferences_are_a_gap_a_matrix_or_a_dataset(preferences):
    planned = small(preferences=preferences, runs=2, horizon="4w")
    assert planned.losses == "regret" and planned.stated.share("winner") == 1.0
    assert planned.stated.lost.min() > 0 == planned.equal.lost.max()


@pytest.mark.long
@pytest.mark.kernels
@pytest.mark.parametrize("margin", [None, "20%"])
def test_an_arm_that_joins_later_costs_what_the_experiments_that_still_run_lose_by_it(
    monkeypatch, margin
):
    monkeypatch.setattr(simulated, "_FIRST_STAGE", 500)  # of 2800
    rates = (0.3, 0.5, 0.48)
    planned = small(rates, add_arm_at="1d", visitors_per_day=200, runs=6, margin=margin)
    ended = planned.without.days <= 1.0
    assert 0 < ended.sum() < 6
    assert (planned.stated.days[ended] == planned.without.days[ended]).all()
    assert (planned.stated.days[~ended] > 1.0).all()
    assert "still running after 1d" in str(planned)


def test_a_plan_writes_a_table_and_a_figure(tmp_path):
    pytest.importorskip("matplotlib")
    planned = small(runs=2)
    planned.write(tmp_path / "plan")
    with open(tmp_path / "plan" / "plan.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["world"] for row in rows] == ["as stated"] * 2 + ["all equal"] * 2
    first = rows[0]
    assert first["days"] == f"{planned.stated.days[0]:.4f}"
    assert first["verdict"] == planned.stated.verdict[0] == "winner"
    assert rows[2]["verdict"] == "undecided" and rows[2]["days"] == rows[2]["arm"] == ""
    assert (tmp_path / "plan" / "plan.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "plan" / "plan.svg").stat().st_size > 1000
    axes = planned.plot()
    assert len(axes) == 2 and axes[0].get_xlim() == (0.0, 14.0)
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.mark.parametrize(
    "options, argument",
    [
        ({"preferences": 0.1, "rates": [0.1, 0.2]}, "rates"),
        ({}, "rates"),
        ({"rates": [0.1]}, "rates"),
        ({"rates": [0.1, 1.0]}, "rates"),
        ({"rates": [0.1, "x%"]}, "rates"),
        ({"rates": [0.1, 0.2], "margin": "none"}, "margin"),
        ({"rates": [0.1, 0.2], "margin": 0}, "margin"),
        ({"rates": [0.1, 0.2], "delay": "geometric:0.1"}, "delay"),
        ({"rates": [0.1, 0.2], "delay": "never:0.1,exponential:1h"}, "delay"),
        ({"rates": [0.1, 0.2], "visitors_per_day": 0}, "visitors_per_day"),
        ({"rates": [0.1, 0.2], "visitors_per_day": 1e9}, "horizon"),
        ({"rates": [0.1, 0.2], "visitors_per_day": 1e308, "horizon": "8w"}, "horizon"),
        ({"rates": [0.1, 0.2], "visitors_per_day": 1e-300}, "horizon"),
        ({"rates": [0.1, 0.2], "add_arm_at": "1d"}, "add_arm_at"),
        ({"rates": [0.1, 0.2, 0.3], "add_arm_at": "8w"}, "add_arm_at"),
        ({"preferences": 0.5}, "preferences"),
    ],
)
def test_what_cannot_be_planned_is_refused_by_its_name(options, argument):
    with pytest.raises(duelay.errors.InvalidValueError) as caught:
        duelay.plan(**{"visitors_per_day": 10, **FEW, **options})
    assert caught.value.argument == argument
