import csv
import dataclasses
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass, field

import numpy as np
import pytest

import duelay
import naive
from duelay import Setting, delays
from duelay.problems import arithmetic, bradley_terry
from duelay.simulation import streams, write_csv
from duelay.simulation.loops.recorder import new_recorder
from duelay.simulation.loops.ticks import run_ticks
from duelay.simulation.world import NO_ENTRY, duel, make_world, take_due
from duelay.testing import compiled_duels, live_duels
from helpers import BUILT_IN, Live

PROBLEM = arithmetic(4, 0.1)
simulate_module = sys.modules[duelay.simulate.__module__]


@pytest.mark.parametrize("window", [None, 1, 8, 64])
@pytest.mark.parametrize(
    "law",
    [
        delays.Geometric(0.1),
        delays.Constant(1),
        delays.Uniform(3, 40),
        delays.Zipf(1.1, 500),
        delays.Never(0.4, delays.LogNormal(6.0, 1.5)),
        delays.Never(1.0, delays.Constant(1)),
        delays.ByPair.of(4, lambda i, j: delays.Geometric(0.05 + 0.1 * i + 0.1 * j)),
    ],
    ids=str,
)
def test_the_world_delivers_each_conversion_at_its_tick(law, window):
    horizon = 150
    world = make_world(PROBLEM, law, window, horizon)
    rng, twin = np.random.default_rng(1), np.random.default_rng(1)
    choose = np.random.default_rng(2)
    expected = {}
    for t in range(1, horizon + 1):
        delivered = []
        while (entry := take_due(world, t)) != NO_ENTRY:
            delivered.append((world.first[entry], world.second[entry], world.born[entry]))
        assert sorted(delivered) == sorted(expected.pop(t, []))
        i, j = choose.integers(4, size=2)
        duel(world, i, j, t, rng)
        won = twin.random() < PROBLEM.matrix[i, j]
        limit = horizon if window is None else window
        d = naive.invert(law.at(i, j), twin.random(), limit)
        if won and d is not None:
            expected.setdefault(t + d, []).append((i, j, t))
    assert all(t > horizon for t in expected)


@pytest.mark.interpreted
@pytest.mark.parametrize("u, answers", [(0.5, 0), (np.nextafter(0.5, 0), 1)])
def test_a_draw_of_exactly_the_share_that_answers_is_silence(u, answers):
    class Draws:
        def __init__(self, *values):
            self.random = iter(values).__next__

    world = make_world(PROBLEM, delays.Never(0.5, delays.Constant(3)), None, 9)
    duel(world, 0, 1, 1, Draws(0.0, u))
    assert world.waiting[0] == answers and (take_due(world, 4) == NO_ENTRY) == (not answers)


@pytest.mark.parametrize("delay", [delays.Constant(1), delays.Geometric(0.05)], ids=str)
def test_regret_is_equation_1(delay):
    policy = duelay.RUCBDelay(delay=delay, window=30)
    checkpoints = [1, 7, 200]
    result = duelay.simulate(
        PROBLEM, policy, delay=delay, horizon=200, runs=3, seed=5, checkpoints=checkpoints
    )
    for run in range(3):
        duels = compiled_duels(policy, PROBLEM, delay, 200, seed=5, run=run)
        for place, t in enumerate(checkpoints):
            assert result.regret[run, place] == pytest.approx(naive.regret(PROBLEM, duels[:t]))
        assert result.final[run] == result.regret[run, -1]
        counts = np.zeros((4, 4))
        for pair in duels:
            counts[pair] += 1
        assert np.array_equal(result.plays[run], counts)


@pytest.mark.long
def test_rucb_delay_without_delay_is_rucb_duel_for_duel():
    for problem in (PROBLEM, duelay.datasets.load("six-rankers")):
        for law in (delays.Constant(1), delays.Geometric(1.0)):
            delayed = duelay.RUCBDelay(delay=law, window=1000, alpha=0.51)
            plain = duelay.RUCB(alpha=0.51)
            args = (problem, law, 400)
            assert compiled_duels(delayed, *args) == compiled_duels(plain, *args)


@dataclass(frozen=True)
class Timetable(duelay.Policy):
    """The same duels whatever happens; draws from its own generator as often as it likes."""

    draws: int = 0
    players: list = field(default_factory=list, compare=False)

    def choose(self, ledger, t, rng):
        rng.random(self.draws)
        return t % 4, t // 4 % 4

    def start(self, arms, seed=None, **told):
        self.players.append(super().start(arms, seed, **told))
        return self.players[-1]


def test_every_policy_meets_the_same_world():
    """Run r draws the same outcomes and delays, whatever a policy draws for itself."""
    kwargs = {"delay": delays.Geometric(0.1), "horizon": 200, "seed": 3, "workers": 1}
    told = []
    for policy, first in ((Timetable(0), 0), (Timetable(5), 0), (Timetable(0), 1)):
        duelay.simulate(PROBLEM, policy, runs=2, setting=Setting(first_run=first), **kwargs)
        told.append([player.history().delay for player in policy.players])
    one, other, next_run = told
    assert np.isfinite(one[0]).sum() > 50
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one[1], next_run[0])  # run 1 is the same in any go
    assert not np.array_equal(one[0], one[1], equal_nan=True)
    world_rng, policy_rng = streams(3, 0)
    assert world_rng.random() != policy_rng.random()


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("policy", BUILT_IN, ids=str)
def test_a_policys_world_stays_in_step_tick_for_tick(policy):
    """Two draws a duel: after t ticks the world's generator is where every other one's is."""
    certain = duelay.Problem([[0.5, 1.0, 1.0], [0.0, 0.5, 1.0], [0.0, 0.0, 0.5]])
    is_calm = isinstance(policy, duelay.RUCB | duelay.RUCBDelay | duelay.RRDBDelay)
    horizon = 30_000 if is_calm else 700  # over a long calm draws are leapt over, not taken
    policy = policy.for_horizon(horizon)
    rule, ledger = policy.rule(3), policy.ledger(3)
    world_rng, policy_rng = streams(3, 4)
    world = make_world(certain, delays.Constant(2), policy.window, horizon)
    recorder = new_recorder(certain.gaps, np.array([horizon]))
    expected = streams(3, 4)[0]
    for until in (1, 50, horizon):
        expected.random(2 * (until - recorder.tick[0]))
        run_ticks(rule, ledger, policy.counts_only, world, recorder, until, world_rng, policy_rng)
        assert world_rng.bit_generator.state == expected.bit_generator.state


def test_checkpoints_are_even_or_given():
    kwargs = {"delay": "constant", "horizon": 10}
    t = duelay.simulate(PROBLEM, duelay.RUCB(), checkpoints=3, **kwargs).t
    assert t.tolist() == [3, 7, 10]
    assert duelay.simulate(PROBLEM, duelay.RUCB(), checkpoints=99, **kwargs).t.tolist() == list(
        range(1, 11)
    )
    result = duelay.simulate(PROBLEM, duelay.RUCB(), checkpoints=[2, 5], **kwargs)
    assert result.t.tolist() == [2, 5] and result.plays.sum() == 10
    long = duelay.simulate(PROBLEM, duelay.RUCB(), delay="constant", horizon=400)
    assert long.t.tolist() == list(range(2, 401, 2))  # 200, if nothing is said
    assert (long.runs, long.seed) == (1, 0)
    assert result.final[0] >= result.regret[0, -1]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"horizon": 0}, "horizon"),
        ({"runs": 0}, "runs must"),
        ({"seed": -1}, "seed must"),
        ({"workers": 0}, "workers"),
        ({"checkpoints": 0}, "checkpoints"),
        ({"checkpoints": [5, 5]}, "checkpoints"),
        ({"checkpoints": [5, 10]}, "checkpoints"),
        ({"checkpoints": []}, "checkpoints"),
        ({"delay": "geometric:2"}, "p must"),
        ({"delay": None}, "delay must"),
        ({"delay": delays.ByPair((delays.Constant(1),) * 4)}, "delay must"),
        (
            {"policy": duelay.RUCB},
            "policy must",
        ),
        (
            {"policy": "rucb"},
            "policy must",
        ),
        (
            {"policy": duelay.recommend()},
            "policy must",
        ),
        ({"policy": duelay.RUCB().start(3)}, "policy must"),
        ({"problem": [[0.5]]}, "problem must"),
        (
            {"problem": "mslr"},
            "problem must",
        ),
        ({"setting": {"stale": 3}}, "setting"),
        ({"setting": None}, "setting"),
    ],
)
def test_bad_input_meets_one_sentence(change, message):
    given = {"problem": PROBLEM, "policy": duelay.RUCB(), "delay": "constant", "horizon": 9}
    given |= change
    with pytest.raises(ValueError, match=message):
        duelay.simulate(given.pop("problem"), given.pop("policy"), **given)


def test_simulate_fills_in_the_horizon_and_warns_when_it_is_short():
    with pytest.warns(UserWarning, match="horizon"):
        result = duelay.simulate(PROBLEM, duelay.MRRDBDelay(), delay="constant", horizon=50)
    assert result.policy.horizon == 50
    with pytest.warns(UserWarning, match="horizon") as caught:
        long = duelay.MRRDBDelay(horizon=10**7)
        duelay.simulate(PROBLEM, long, delay="constant", horizon=50, runs=5)
    assert len(caught) == 1


def test_counts_credit_the_pair_in_play():
    """Conversions of one pair that come while another is played count for the other."""
    policy = duelay.MRRDBDelay(schedule=(5, 6), feedback="counts", horizon=40)
    certain = duelay.Problem([[0.5, 1.0, 1.0], [0.0, 0.5, 1.0], [0.0, 0.0, 0.5]])
    late = delays.Constant(5)
    world_rng, policy_rng = streams(0, 0)
    player = policy.start(3, policy_rng)
    for t in range(1, 16):  # (0, 1) five times, then (0, 2), then (1, 2): all convert 5 later
        player.tell_count(1 if t > 5 else 0)
        player.ask()
    conversions = player.standing().conversions
    assert [conversions[0, 1], conversions[0, 2], conversions[1, 2]] == [1, 5, 4]
    assert compiled_duels(policy, certain, late, 40) == live_duels(policy, certain, late, 40)


@pytest.mark.long
@pytest.mark.parametrize("law", [delays.Geometric(0.05), delays.Constant(30)], ids=str)
def test_the_leader_is_the_one_that_a_player_would_name(law):
    """As of the tick after the horizon, when the last conversions have aged."""
    from duelay.simulation.loops.plain_python import play_player

    problem = bradley_terry([1.0, 1.1, 0.95, 1.05])
    for policy in (
        duelay.RUCBDelay(delay=law, window=40),
        duelay.RRDBDelay(delay=law),
        duelay.MaillardSampling(delay=law, window=40),
    ):
        result = duelay.simulate(problem, policy, delay=law, horizon=37, runs=30, seed=3)
        for run in range(30):
            world_rng, policy_rng = streams(3, run)
            player = policy.start(4, policy_rng)
            world = make_world(problem, law, policy.window, 37)
            recorder, plays = (
                new_recorder(problem.gaps, np.array([37])),
                np.zeros((4, 4), dtype=np.int64),
            )
            play_player(player, False, world, recorder, plays, 37, world_rng, [])
            assert plays.sum() == 37
            assert player.standing().leader == result.leader[run]


def test_a_failing_policy_stops_the_simulation_with_its_own_error():
    @dataclass(frozen=True)
    class Breaks(duelay.Policy):
        def choose(self, ledger, t, rng):
            if t == 20:
                raise RuntimeError("out of ideas")
            return 0, 1

    for workers in (1, 3):
        with pytest.raises(RuntimeError, match="out of ideas"):
            duelay.simulate(
                PROBLEM, Breaks(), delay="constant", horizon=100, runs=5, workers=workers
            )


def test_the_failure_of_a_later_run_is_told_and_stops_the_first():
    @dataclass(frozen=True)
    class BreaksInRun1(duelay.Policy):
        def choose(self, ledger, t, rng):
            if t == 20 and rng.bit_generator.seed_seq.spawn_key[0] == 1:
                raise RuntimeError("out of ideas")
            return 0, 1

    with pytest.raises(RuntimeError, match="out of ideas"):
        duelay.simulate(
            PROBLEM, BreaksInRun1(), delay="geometric:0.5", horizon=10**6, runs=4, workers=2,
            checkpoints=1,
        )  # fmt: skip


def test_a_run_goes_on_however_long_a_tick_takes(monkeypatch):
    """By a clock that jumps: a slice is one tick then, not none."""
    kwargs = {"delay": "constant", "horizon": 300, "workers": 1}
    plain = duelay.simulate(PROBLEM, duelay.RUCB(), **kwargs)
    monkeypatch.setattr(time, "perf_counter", iter(range(0, 10**6, 1000)).__next__)
    slow = duelay.simulate(PROBLEM, duelay.RUCB(), setting=Setting(progress=False), **kwargs)
    assert np.array_equal(slow.plays, plain.plays)


def test_workers_are_the_cores_that_this_process_may_use(monkeypatch):
    cores = simulate_module._cores
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1, 4, 6}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert cores() == 8
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


def wake_another_thread():
    """Ctrl-C as it comes where a library, such as polars, has it handled elsewhere."""
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize(
    "workers, press",
    [(1, lambda: os.kill(os.getpid(), signal.SIGINT)),
     (2, lambda: os.kill(os.getpid(), signal.SIGINT)), (2, wake_another_thread)],
    ids=["1", "2", "2 elsewhere"],
)  # fmt: skip
def test_ctrl_c_stops_a_long_simulation_cleanly(workers, press, monkeypatch):
    def workers_alive():
        return [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]

    before = workers_alive()
    begun, is_over = threading.Event(), threading.Event()

    class Bar(simulate_module.tqdm):
        def update(self, n=1):
            begun.set()

    def press_once():
        begun.wait()
        if not is_over.is_set():  # else the simulation has failed: it would hit another test
            press()

    monkeypatch.setattr(simulate_module, "tqdm", Bar)
    pressed = threading.Thread(target=press_once)
    pressed.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            duelay.simulate(
                bradley_terry(np.linspace(1, 2, 20)),
                duelay.DoubleThompson(),  # it looks at every tick
                delay="geometric:0.01",
                horizon=10**9,  # for days: it ends by Ctrl-C or not at all
                runs=2,
                workers=workers,
            )
    finally:
        is_over.set()
        begun.set()
        pressed.join()
    assert workers_alive() == before


def test_a_progress_bar_is_drawn_when_asked_for(capsys):
    kwargs = {"delay": "constant", "horizon": 500, "runs": 2}
    duelay.simulate(PROBLEM, duelay.RUCB(), setting=Setting(progress=True), **kwargs)
    assert "duels" in capsys.readouterr().err
    duelay.simulate(PROBLEM, duelay.RUCB(), **kwargs)  # nobody is watching
    assert capsys.readouterr().err == ""


def test_the_csv_is_tidy_and_written_whole(tmp_path):
    result = duelay.simulate(
        PROBLEM, duelay.RUCB(), delay="constant", horizon=20, runs=2, checkpoints=4
    )
    path = tmp_path / "regret.csv"
    write_csv([result, result], path)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert len(rows) == 2 * 2 * 4
    assert rows[0]["problem"] == "arithmetic" and rows[0]["law"] == "constant:1"
    assert [float(row["regret"]) for row in rows[:4]] == result.regret[0].tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["regret.csv"]
    with pytest.raises(FileNotFoundError):
        write_csv([result], tmp_path / "nowhere" / "regret.csv")


def test_runs_may_be_done_in_several_goes_and_pairs_recorded():
    @dataclass(frozen=True)
    class Anyone(duelay.Policy):
        def choose(self, ledger, t, rng):
            return rng.integers(4), rng.integers(4)

    def runs_from(first, runs, policy):
        return duelay.simulate(
            PROBLEM, policy, delay="geometric:0.1", horizon=60, runs=runs, checkpoints=[10, 60],
            setting=Setting(first_run=first, pairs=True),
        )  # fmt: skip

    for policy in (duelay.RUCBDelay(), Anyone()):
        whole = runs_from(0, 5, policy)
        parts = [runs_from(first, runs, policy) for first, runs in ((0, 2), (2, 3))]
        assert np.array_equal(whole.regret, np.concatenate([part.regret for part in parts]))
        assert np.array_equal(whole.pairs, parts[0].pairs + parts[1].pairs)
        assert whole.pairs[0].sum() == 50 and np.array_equal(whole.pairs[1], whole.plays.sum(0))
    assert duelay.simulate(PROBLEM, duelay.RUCB(), delay="constant", horizon=5).pairs is None


@pytest.mark.parametrize(
    "policy", [duelay.Decide(), duelay.DoubleThompson(), Live(duelay.Decide())], ids=str
)
def test_where_nothing_was_heard_nobody_leads(policy):
    law, winner_first = delays.Never(1.0, delays.Constant(1)), arithmetic(3, 0.1)
    result = duelay.simulate(winner_first, policy, delay=law, horizon=50, runs=3)
    assert result.leader.tolist() == [-2, -2, -2] and result.led_by_winner == 0.0


def test_duels_can_be_seen_of_a_problem_without_a_winner():
    even, setting = duelay.Problem(np.full((3, 3), 0.5)), duelay.Setting(target="copeland")
    live, simulated = (
        duels(duelay.RUCB(), even, delays.Constant(1), 30, setting=setting)
        for duels in (live_duels, compiled_duels)
    )
    assert live == simulated


def test_rows_of_a_later_go_have_the_numbers_of_their_runs(tmp_path):
    later = duelay.simulate(
        PROBLEM, duelay.RUCB(), delay="constant", horizon=5, runs=2, checkpoints=[5],
        setting=Setting(first_run=3),
    )  # fmt: skip
    write_csv([later], tmp_path / "regret.csv")
    with open(tmp_path / "regret.csv", newline="") as file:
        assert [row["run"] for row in csv.DictReader(file)] == ["3", "4"]


def test_results_sum_themselves_up():
    result = duelay.simulate(PROBLEM, duelay.RUCB(), delay="constant", horizon=300, runs=4)
    np.testing.assert_allclose(result.mean, result.regret.mean(axis=0))
    np.testing.assert_allclose(result.std, result.regret.std(axis=0, ddof=1))
    assert result.runs == 4 and 0 <= result.led_by_winner <= 1 and result.microseconds > 0
    two = dataclasses.replace(result, regret=result.regret[:2], final=np.array([1.0, 3.0]))
    assert "rucb, delay=constant:1, horizon=300, runs=2: regret 2.0 ± 1.4)" in repr(two)
    assert dataclasses.replace(result, seconds=0.0006).microseconds == pytest.approx(0.5, rel=1e-9)
    one = duelay.simulate(PROBLEM, duelay.RUCB(), delay="constant", horizon=5)
    assert np.isnan(one.std).all() and one.std.shape == one.t.shape  # it has none
    assert repr(one).endswith(f"runs=1: regret {one.final[0]:.1f})")
    assert result == result and result != one and len({result, one}) == 2  # no array is compared


def test_a_label_leaves_out_what_is_true_of_the_world():
    result = duelay.simulate(PROBLEM, duelay.RUCB(), delay="constant", horizon=5)
    for law, form, label in (
        (delays.Geometric(0.1), "rucb-delay:delay=geometric:0.1,window=50", "rucb-delay:window=50"),
        (delays.Uniform(1, 9), "rucb-delay:delay=(uniform:1,9),alpha=0.6", "rucb-delay:alpha=0.6"),
        (delays.Constant(2), "rucb-delay:delay=geometric:0.1", "rucb-delay:delay=geometric:0.1"),
        (delays.Geometric(0.1), "rr-db-delay:delay=geometric:0.1", "rr-db-delay"),
        (delays.Constant(3), "mrr-db-delay:mean_delay=3,horizon=5", "mrr-db-delay"),
        (delays.Constant(4), "mrr-db-delay:mean_delay=3", "mrr-db-delay:mean_delay=3"),
        (
            delays.Constant(4),
            "double-thompson:delay=constant:4",
            "double-thompson:delay=constant:4",
        ),
    ):
        told = dataclasses.replace(result, policy=duelay.policies.parse(form), delay=law)
        assert told.label == (label or form)


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.filterwarnings("ignore:horizon .* is too short")
@pytest.mark.parametrize("k", [2, 200])
def test_odd_sizes(k, interpreted):
    problem = bradley_terry(np.linspace(2, 1, k))
    horizon = 30 if interpreted else 2000
    for policy in (
        duelay.RUCBDelay(delay=delays.Zipf(1.2, 100), window=50),
        duelay.RRDBDelay(),
        duelay.MRRDBDelay(schedule=(1, 2)),
    ):
        result = duelay.simulate(problem, policy, delay="zipf:1.2,100", horizon=horizon)
        assert result.plays.sum() == horizon


def test_certain_outcomes_and_ties():
    certain = duelay.Problem([[0.5, 1.0, 1.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]])
    for policy in (duelay.RUCBDelay(), duelay.RRDBDelay(), duelay.RUCB()):
        result = duelay.simulate(certain, policy, delay="geometric:0.2", horizon=1500, runs=2)
        assert result.led_by_winner == 1


@pytest.mark.compiled
def test_ten_million_duels_with_a_window_fit_in_little_memory():
    import tracemalloc

    tracemalloc.start()
    result = duelay.simulate(
        arithmetic(3, 0.1),
        duelay.RUCBDelay(),
        delay="geometric:0.01",
        horizon=10_000_000,
        checkpoints=10,
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.plays.sum() == 10_000_000
    assert peak < 50e6


@pytest.mark.compiled
def test_a_law_with_a_tail_as_long_as_the_horizon_needs_no_window():
    result = duelay.simulate(
        arithmetic(3, 0.1),
        duelay.RUCB(alpha=1.0),
        delay=delays.LogNormal(1000.0, 3.0),
        horizon=300_000,
    )
    assert result.plays.sum() == 300_000
