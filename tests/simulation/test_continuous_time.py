"""The simulator by the clock: duels as traffic brings them, the same as a live player's."""

import heapq
from dataclasses import dataclass

import numpy as np
import pytest

import duelay
from duelay import delays
from duelay.problems import arithmetic
from duelay.simulation import streams
from duelay.simulation.loops.continuous_time import draw_timed_world
from duelay.testing import compiled_duels, live_duels

PROBLEM = arithmetic(4, 0.15)
LAW = delays.Never(0.2, delays.LogNormal("10m", 1.0))
PAIRS = delays.ByPair.of(4, lambda i, j: delays.Exponential("5m" if i < j else "20m"))
POLICIES = {
    "none": duelay.DoubleThompson(),
    "learned": duelay.DoubleThompson(delay="learn"),
    "told": duelay.DoubleThompson(delay=LAW, window="1h"),
    "by pair": duelay.RUCBDelay(delay=PAIRS, window=None),
    "rmed": duelay.RMED(),
    "rr": duelay.RRDBDelay(delay=LAW, window=None),
    "decide": duelay.Decide(),
    "decide, told": duelay.Decide(delay=LAW, window="2h"),
}
IN_TICKS = {
    "learned": duelay.DoubleThompson(delay="learn"),
    "told": duelay.DoubleThompson(delay="geometric:0.05", window=40),
    "decide": duelay.Decide(),
}
FAST = "bursts:40,1h,1s"


@dataclass(frozen=True)
class Anyone(duelay.Policy):
    """Two arms at random, in plain Python; a law is learned."""

    delay: str | None = "learn"
    order: str = "coin"

    def choose(self, ledger, t, rng):
        """Any two."""
        return rng.integers(len(ledger.plays)), rng.integers(len(ledger.plays))


def simulate(policy=POLICIES["none"], delay=LAW, traffic="poisson:1m", horizon=120, **options):
    setting = duelay.Setting(progress=False, **options.pop("setting", {}))
    return duelay.simulate(
        PROBLEM, policy, delay=delay, traffic=traffic, horizon=horizon, setting=setting, **options
    )


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("feedback", ["conversions", "votes"])
@pytest.mark.parametrize("traffic", ["poisson:1m", FAST])
@pytest.mark.parametrize("name", POLICIES)
def test_live_and_simulated_runs_agree_duel_for_duel_by_the_clock(name, traffic, feedback):
    setting = duelay.Setting(traffic=traffic, feedback=feedback)
    law = PAIRS if name == "by pair" else LAW
    args = (POLICIES[name], PROBLEM, law, 350)
    assert live_duels(*args, seed=4, setting=setting) == compiled_duels(
        *args, seed=4, setting=setting
    )


@pytest.mark.parametrize("name", IN_TICKS)
def test_live_and_simulated_runs_agree_in_ticks_in_the_same_traffic(name):
    setting = duelay.Setting(traffic=FAST, by_clock=False)
    args = (IN_TICKS[name], PROBLEM, LAW, 350)
    live = live_duels(*args, seed=5, setting=setting)
    assert live == compiled_duels(*args, seed=5, setting=setting)


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("name", ["learned", "told", "decide", "decide, told"])
@pytest.mark.parametrize("law", [LAW, delays.Constant("2m")])
def test_answers_come_in_the_order_of_time_and_of_duels_at_one_time(name, law):
    """The same draws, with Python's own heap."""
    horizon, seed, policy = 300, 6, POLICIES[name]
    world_rng, policy_rng = streams(seed, 0)
    world = draw_timed_world(
        PROBLEM, law, duelay.traffic.Steady("1m"), horizon, world_rng,
        policy=policy, by_clock=True, is_vote=False,
    )  # fmt: skip
    player, due, duels = policy.start(PROBLEM.arms, policy_rng, clock="wall"), [], []
    for n, at in enumerate(world.at):
        while due and due[0][0] <= at:
            when, duel = heapq.heappop(due)
            assert player.tell(duel, at=when) in ("counted", "late")
        duel = player.ask(at=at)
        duels.append((duel.first, duel.second))
        if world.uniform[n] < PROBLEM.matrix[duel.first, duel.second]:
            if np.isfinite(world.delay[0, n]):
                heapq.heappush(due, (at + world.delay[0, n], duel))
    setting = duelay.Setting(traffic="steady:1m")
    assert duels == compiled_duels(policy, PROBLEM, law, horizon, seed, setting=setting)


def test_a_policy_in_plain_python_is_played_through_its_player():
    for policy, setting in (
        (Anyone(), {}),
        (Anyone(), {"feedback": "votes"}),
        (Anyone(delay=None), {"by_clock": False}),
    ):
        result = simulate(policy, runs=2, setting=setting, horizon=150)
        assert result.plays.sum() == 300 and (result.leader >= 0).all()


@pytest.mark.long
@pytest.mark.interpreted
def test_numbers_do_not_depend_on_workers_and_a_run_meets_its_world_under_every_policy():
    one, three = (simulate(POLICIES["learned"], runs=3, workers=n) for n in (1, 3))
    assert np.array_equal(one.regret, three.regret) and np.array_equal(one.plays, three.plays)
    later = simulate(POLICIES["learned"], runs=1, setting={"first_run": 2})
    assert np.array_equal(later.plays[0], one.plays[2])


def test_an_answer_after_its_window_is_not_heard():
    """Answers take two minutes: with a window of one nobody is heard, with one of two all are."""
    law = delays.Constant("2m")
    for window, is_heard in (("1m", False), ("119s", False), ("2m", True), (None, True)):
        policy = duelay.DoubleThompson(window=window)
        setting = duelay.Setting(traffic="steady:1s")
        duels = compiled_duels(policy, PROBLEM, law, 200, setting=setting)
        silent = compiled_duels(
            duelay.DoubleThompson(), PROBLEM, delays.Constant("9d"), 200, setting=setting
        )
        assert duels[:120] == silent[:120] and (duels != silent) is is_heard


def test_steady_traffic_with_whole_delays_is_the_simulation_in_ticks():
    """A duel each second, answers after whole seconds, no law: the clock changes nothing."""
    for policy in (duelay.DoubleThompson(), duelay.RMED()):
        setting = duelay.Setting(traffic="steady:1s")
        by_clock = compiled_duels(policy, PROBLEM, delays.Constant("7s"), 200, setting=setting)
        in_ticks = compiled_duels(
            policy, PROBLEM, delays.Constant("7s"), 200,
            setting=duelay.Setting(traffic="steady:1s", by_clock=False),
        )  # fmt: skip
        assert by_clock == in_ticks


def test_checkpoints_stops_and_pairs_count_duels():
    result = simulate(
        duelay.Decide(error=0.3), delay="exponential:10s", traffic="poisson:1m", horizon=1500,
        stop=0.3, checkpoints=[10, 1500], setting={"pairs": True},
    )  # fmt: skip
    assert result.t.tolist() == [10, 1500] and result.pairs[0].sum() == 10
    assert result.is_declared.all() and result.plays.sum() == result.stopped[0] < 1500
    assert len(result.paths) == 1


def test_a_result_says_its_traffic():
    result = simulate(traffic="bursts:20,1h", setting={"by_clock": False})
    assert result.traffic == duelay.traffic.Bursts(20, "1h")
    assert str(result.setting) == "traffic=bursts:20,1h,10ms, by_clock=False"
    assert "traffic=bursts:20,1h,10ms, by_clock=False" in repr(result)
    assert "bursts:20,1h,10ms" in result._repr_html_()
    in_ticks = duelay.simulate(PROBLEM, duelay.RMED(), delay="constant:3", horizon=5)
    assert in_ticks.traffic is None


@pytest.mark.parametrize(
    "options, why",
    [
        ({"traffic": None}, r"^delay never:.* is in time"),
        ({"delay": "geometric:0.1"}, "delay"),
        ({"traffic": 3}, "traffic"),
        ({"setting": {"traffic": "steady:1s"}}, "traffic"),
        ({"setting": {"stale": 3}}, "stale"),
        ({"setting": {"batch": 3}}, "batch"),
        ({"policy": duelay.MRRDBDelay(mean_delay=9)}, "traffic"),
        ({"policy": duelay.MRRDBDelay(mean_delay=9, feedback="counts")}, r"which hears counts"),
        ({"policy": duelay.RUCBDelay()}, r"^(window 1000|delay geometric:0.01) is in ticks"),
        ({"policy": duelay.DoubleThompson("learn-from-self-duels")}, r"does not go by the clock"),
        ({"policy": POLICIES["told"], "setting": {"by_clock": False}}, "window"),
        ({"setting": {"joins": "1h"}}, "joins"),
        ({"policy": duelay.Decide(winner_exists=True), "setting": {"joins": "1h"}}, "joins"),
        ({"policy": duelay.Decide(), "setting": {"joins": "1h", "by_clock": False}}, "joins"),
    ],
)  # fmt: skip
def test_what_does_not_go_with_traffic_is_refused(options, why):
    with pytest.raises(ValueError, match=why):
        simulate(**options)


JOINED = {
    "pairs": (duelay.Decide(), PROBLEM),
    "a margin": (duelay.Decide(margin=0.1, wait="2m"), PROBLEM),
    "good enough": (duelay.Decide(margin=0.2, end="good_enough", wait="2m"), PROBLEM),
    "one arm": (
        duelay.Decide(display="one", margin=0.1, wait="2m"),
        duelay.Problem.from_rates([0.2, 0.5, 0.3, 0.6]),
    ),
}


@pytest.mark.parametrize("name", JOINED)
def test_the_last_arm_joins_a_simulated_run_as_it_joins_a_live_player(name):
    """The same draws, with a player."""
    (policy, problem), horizon, law = JOINED[name], 400, delays.Exponential("1m")
    world_rng, policy_rng = streams(3, 0)
    world = draw_timed_world(
        problem, law, duelay.traffic.Steady("1m"), horizon, world_rng,
        policy=policy, by_clock=True, is_vote=False,
    )  # fmt: skip
    player, due, duels = policy.start(problem.arms[:-1], policy_rng, clock="wall"), [], []
    for n, at in enumerate(world.at):
        if at == 3 * 3600:
            player.add_arm(problem.arms[-1])
        while due and due[0][0] <= at:
            when, duel = heapq.heappop(due)
            player.tell(duel, at=when)
        duel = player.ask(at=at)
        duels.append((duel.first, duel.second))
        if world.uniform[n] < problem.chances[duel.first, duel.second]:
            heapq.heappush(due, (at + world.delay[0, n], duel))
    assert max(map(max, duels[:180])) == 2 and max(map(max, duels[180:])) == 3
    setting = duelay.Setting(traffic="steady:1m", joins="3h")
    assert duels == compiled_duels(policy, problem, law, horizon, 3, setting=setting)


@pytest.mark.parametrize("margin", [None, 0.2])
def test_a_run_that_ends_before_the_last_arm_joins_is_the_run_without_it(margin):
    """Also its verdict: it is right, although the arm that would join is the best one."""
    four = duelay.Problem(PROBLEM.matrix[::-1, ::-1])
    three = duelay.Problem(four.matrix[:3, :3])
    policy = duelay.Decide(error=0.3, margin=margin)
    without, result = (
        duelay.simulate(
            problem, policy, delay="exponential:1s", traffic="steady:1s", horizon=2000, stop=0.3,
            runs=2, seed=1, setting=duelay.Setting(progress=False, joins=joins),
        )
        for problem, joins in ((three, None), (four, "1500s"))
    )  # fmt: skip
    ended = result.stopped <= 1500
    assert ended.any() and (without.stopped[ended] == result.stopped[ended]).all()
    assert (without.leader[ended] == result.leader[ended]).all()
    assert (without.is_wrong[ended] == result.is_wrong[ended]).all() and not result.is_wrong.all()
    plays = result.plays[ended]
    assert (plays[:, :3, :3] == without.plays[ended]).all() and not plays[:, 3].any()


def test_ticks_in_ticks_need_no_switch():
    with pytest.raises(ValueError, match=r"^by_clock=False needs traffic"):
        simulate(delay="constant:1", traffic=None, setting={"by_clock": False})


def test_a_start_without_a_clock_is_refused_before_the_runs():
    class Own:
        def start(self, arms, seed):
            return duelay.RMED().start(arms, seed)

    with pytest.raises(ValueError, match="traffic"):
        simulate(Own())
    assert simulate(Own(), setting={"by_clock": False}).plays.sum() == 120
