import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest

import duelay
import naive
from duelay import Duel, UnknownDuelError, delays
from duelay.problems import bradley_terry
from duelay.testing import live_duels


def test_the_docs_first_lines_work():
    problem = duelay.datasets.load("six-rankers")
    player = duelay.RUCBDelay(delay=delays.Geometric(0.01), window=1000, alpha=1.0).start(
        problem.arms, seed=0
    )
    duel = player.ask()
    assert duel.id == 0 and player.tick == 1
    assert player.tell(duel) == "counted"
    assert player.tell(duel.id) == "repeated"
    assert player.tell(np.int64(0)) == "repeated"


def test_the_window_closes_after_age_m():
    """Told between ask t and ask t + 1 it is heard at t + 1: age t + 1 - s."""
    player = duelay.RUCB(window=3).start(2, seed=0)
    duels = [player.ask() for _ in range(3)]
    assert player.tell(duels[0]) == "counted"  # age 3 at the next ask
    player.ask()
    assert player.tell(duels[1]) == "counted"  # age 3
    player.ask()
    assert player.tell(duels[2]) == "counted"
    player = duelay.RUCB(window=3).start(2, seed=0)
    duels = [player.ask() for _ in range(4)]
    assert player.tell(duels[0]) == "late"  # age 4
    assert player.tell(duels[0]) == "late"
    assert player.standing().conversions.sum() == 0


def test_repeated_is_said_even_when_the_window_has_closed():
    player = duelay.RUCB(window=2).start(2, seed=0)
    duel = player.ask()
    player.tell(duel)
    for _ in range(10):
        player.ask()
    assert player.tell(duel) == "repeated"


@pytest.mark.parametrize(
    "wrong, message",
    [
        (5, "no duel 5: 2 have been asked"),
        (-1, "no duel -1: 2 have been asked"),
        (Duel(1, 9, 9), r"no duel \(1, 9, 9\): duel 1 is Duel\(id=1"),
        ("1", "no duel '1': give what ask"),
        (1.0, "no duel 1.0: give what ask"),
        (True, "no duel True"),
        ((), r"no duel \(\): give what ask"),
    ],
)
def test_an_unknown_duel_is_named(wrong, message):
    player = duelay.RUCB().start(3, seed=0)
    player.ask()
    player.ask()
    with pytest.raises(UnknownDuelError, match=message):
        player.tell(wrong)
    assert player.standing().conversions.sum() == 0


def test_a_self_duels_conversion_is_accepted_and_changes_no_preference():
    player = duelay.RRDBDelay(delay=delays.Constant(1)).start(2, seed=0)
    while True:
        duel = player.ask()
        if duel.first == duel.second:
            break
        if duel.first == 0:
            player.tell(duel)
    before = player.standing()
    assert player.tell(duel) == "counted"
    after = player.standing()
    assert after.conversions[0, 0] == 1
    np.testing.assert_array_equal(before.mean, after.mean)


def test_players_of_counts_hear_nothing_else():
    player = duelay.MRRDBDelay(schedule=(2, 4), feedback="counts", horizon=50).start(3, seed=0)
    player.tell_count(0)  # nothing has been asked, nothing came
    with pytest.raises(ValueError, match="n must"):
        player.tell_count(1)
    for _ in range(3):
        duel = player.ask()
    player.tell_count(2)
    conversions = player.standing().conversions
    assert conversions[duel.first, duel.second] == 2 and conversions.sum() == 2
    with pytest.raises(ValueError, match="n must"):
        player.tell_count(2)
    with pytest.raises(ValueError, match="n must"):
        player.tell_count(-1)
    with pytest.raises(ValueError, match="^tell .*tell_count"):
        player.tell(duel)
    assert player.standing().pending is None
    assert "?" in str(player.standing())
    with pytest.raises(ValueError, match="^tell_count "):
        duelay.RUCB().start(2).tell_count(1)


def test_mrr_needs_a_horizon_to_start_and_warns_when_it_is_short():
    with pytest.raises(ValueError, match="horizon must"):
        duelay.MRRDBDelay().start(3)
    assert duelay.MRRDBDelay(horizon=7000).rounds()[0] == 793
    with pytest.warns(UserWarning, match=r"takes 7930 ticks \(793 duels for each of 10 pairs\)"):
        duelay.MRRDBDelay(horizon=7000).start(5)
    with pytest.warns(UserWarning, match="horizon"):
        duelay.MRRDBDelay(horizon=3).start(2)
    assert duelay.MRRDBDelay(schedule=7).schedule == (7,)
    assert duelay.MRRDBDelay(schedule=np.array([7, 9])).schedule == (7, 9)
    assert duelay.MRRDBDelay(constants=np.array([1, 2, 3])).constants == (1, 2, 3)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: duelay.RUCB(alpha=0.5), "alpha"),
        (lambda: duelay.RUCBDelay(alpha=0.1), "alpha"),
        (lambda: duelay.RUCBDelay(alpha=math.nan), "alpha"),
        (lambda: duelay.RUCBDelay(window=10**400), "window must"),
        (lambda: duelay.RUCB().start(-3), "arms must"),
        (lambda: duelay.RUCB().start({"a", "b"}), "got the set, which has no order"),
        (lambda: duelay.RUCB().start(3, seed="x"), "seed must"),
        (lambda: duelay.RUCB().start(3, seed=-1), "seed must"),
        (lambda: duelay.RUCBDelay(window=0), "window must"),
        (lambda: duelay.RRDBDelay(window=2.5), "window must"),
        (
            lambda: duelay.RUCB(window="long"),
            "window must",
        ),
        (lambda: duelay.RRDBDelay(delta=0), "delta"),
        (lambda: duelay.RUCB(counting="all"), "counting"),
        (lambda: duelay.RUCBDelay(delay=0.01), "delay must"),
        (lambda: duelay.RUCBDelay(delay="learn"), "RUCBDelay must be told a delay law, .* 'learn'"),
        (lambda: duelay.RRDBDelay(delay=None), "RRDBDelay must be told a delay law, .* got None"),
        (lambda: duelay.MRRDBDelay(mean_delay=0.5), "mean_delay"),
        (lambda: duelay.MRRDBDelay(mean_delay=math.inf), "mean_delay"),
        (
            lambda: duelay.MRRDBDelay(mean_delay=1e300),
            "mean_delay",
        ),
        (lambda: duelay.MRRDBDelay(horizon=0), "horizon"),
        (lambda: duelay.MRRDBDelay(constants=(1, 2)), "constants"),
        (lambda: duelay.MRRDBDelay(constants=(0, 1, 1)), "constants"),
        (lambda: duelay.MRRDBDelay(schedule=(5, 5)), "schedule"),
        (lambda: duelay.MRRDBDelay(schedule=(0, 5)), "schedule"),
        (lambda: duelay.MRRDBDelay(schedule=()), "schedule"),
        (lambda: duelay.MRRDBDelay(pairs="both"), "pairs"),
        (
            lambda: duelay.MRRDBDelay(feedback="none"),
            "feedback",
        ),
        (
            lambda: duelay.MRRDBDelay(constants=(1, 1, 1), schedule=(2,)),
            "give constants alone",
        ),
        (lambda: duelay.RUCB().start(1), "arms must"),
        (lambda: duelay.RUCB().start(["a", "a"]), "arms must"),
        (lambda: duelay.RUCB().start(3.5), "arms must"),
        (
            lambda: duelay.RUCB().start(np.full((3, 3), 0.5)),
            r"got rows, as of a matrix: pass len\(matrix\), or names",
        ),
        (lambda: duelay.RUCB().start([[0.5, 0.6], [0.4, 0.5]]), "or a sequence of names, got rows"),
        (lambda: duelay.RUCB().start(((0.5, 0.6), (0.4, 0.5))), "or a sequence of names, got rows"),
        (lambda: duelay.RUCB().start(np.zeros((0, 2))), "or a sequence of names, got rows"),
        (
            lambda: duelay.RUCB().start(np.array(3)),
            "arms must",
        ),
        (
            lambda: duelay.RUCB().start(duelay.datasets.load("mslr")),
            "or a sequence of names, got a Problem: take its .arms",
        ),
        (
            lambda: duelay.RUCB().start(3).standing(confidence=1),
            "confidence",
        ),
        (
            lambda: duelay.RUCBDelay(
                delay=delays.ByPair.of(3, lambda i, j: delays.Constant(1))
            ).start(2),
            "delay must",
        ),
    ],
)
def test_bad_input_meets_one_sentence(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


def test_a_compiled_policy_is_not_called_by_choose():
    with pytest.raises(TypeError, match="use start"):
        duelay.RUCB().choose(None, 1, None)


def test_the_standing_is_of_the_next_tick():
    law, window = delays.Uniform(1, 30), 20
    player = duelay.RUCBDelay(delay=law, window=window).start(3, seed=4)
    rng = np.random.default_rng(0)
    history = []
    for t in range(1, 80):
        duel = player.ask()
        history.append(
            naive.Past(duel.first, duel.second, rng.random() < 0.7, law.sample(seed=rng))
        )
        for s, past in enumerate(history, start=1):
            if past.won and past.delay == t + 1 - s:
                player.tell(s - 1)
    t = player.tick + 1
    n, n_tilde, _, mean = naive.estimates(history, t, 3, lambda i, j, a: law.cdf(a), window)
    standing = player.standing(confidence=0.9)
    np.testing.assert_allclose(standing.mean, mean, atol=1e-9)
    # Hoeffding for 3 pairs: error 0.1 / 3 each, two sides.
    width = np.sqrt(n * math.log(2 / (0.1 / 3)) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        width = np.where(n_tilde > 0, width / n_tilde, np.inf)
    np.fill_diagonal(width, 0)
    lower, upper = standing.one_look
    np.testing.assert_allclose(upper, mean + width, atol=1e-9)
    np.testing.assert_allclose(lower, mean - width, atol=1e-9)
    pending = np.zeros((3, 3))
    for s, past in enumerate(history, start=1):
        told = past.won and past.delay <= min(t - s, window)
        if not told and t - s <= window:
            pending[past.first, past.second] += 1
    np.testing.assert_array_equal(standing.pending, pending)
    assert standing.tick == 79 and standing.plays.sum() == 79
    scores = [(np.delete(mean[i], i) > 0.5).sum() for i in range(3)]
    assert scores[standing.leader] == max(scores)


def test_the_standing_as_a_table():
    player = duelay.RRDBDelay(delay=delays.Constant(1), delta=0.5).start(["red", "blue"], seed=0)
    assert "unheard" in str(player.standing())
    assert "nothing has been heard after 0 duels: no arm leads yet" in str(player.standing())
    assert not player.standing().is_sure
    assert player.standing().candidates.all()
    for _ in range(300):
        duel = player.ask()
        if duel.first == 0:
            player.tell(duel)
    shown = str(player.standing())
    assert (
        "red wins by its intervals, after 300 duels (wrong in at most 5 % of experiments" in shown
    )
    assert "blue (dropped)" in shown
    assert player.standing().is_sure
    assert player.standing().candidates.tolist() == [True, False]
    assert "tick=300" in repr(player)


def test_an_estimate_outside_its_range_is_cut_off_in_print_only():
    player = duelay.RUCBDelay().start(2, seed=0)
    duel = player.ask()
    player.tell(duel)
    standing = player.standing()
    assert standing.mean[duel.first, duel.second] == pytest.approx(100)  # 1 heard, 0.01 expected
    assert "1.000  [0.000, 1.000]" in str(standing)
    assert "leads after 1 duel (not yet sure at 95 %)" in str(standing)


def test_a_policy_that_takes_silence_for_defeat_is_never_sure():
    player = duelay.MRRDBDelay(schedule=(100, 200), horizon=10**5).start(["old", "new"], seed=0)
    player.ask()
    assert "nothing has been heard after 1 duel: no arm leads yet" in str(player.standing())
    player.tell(0)
    for _ in range(59):
        player.ask()
    assert "new leads after 60 duels (not guaranteed)" in str(player.standing())
    assert (player.standing().lower[1, 0] > 0.5) and not player.standing().is_sure


@pytest.mark.parametrize(
    "mean, active, leader",
    [
        # Arm 1 beats two others narrowly; arm 0 beats one by far and has the larger sum.
        ([[0.5, 0.45, 0.99], [0.55, 0.5, 0.51], [0.01, 0.49, 0.5]], [1, 1, 1], 1),
        ([[0.5, 0.45, 0.99], [0.55, 0.5, 0.51], [0.01, 0.49, 0.5]], [1, 0, 1], 0),  # dropped
        ([[0.5, 0.6, 0.4], [0.4, 0.5, 0.9], [0.6, 0.1, 0.5]], [1, 1, 1], 1),  # a circle: the sum
        ([[0.5, np.nan, np.nan], [np.nan, 0.5, 0.6], [np.nan, 0.4, 0.5]], [1, 1, 1], 1),
    ],
)
def test_the_leader_beats_the_most_active_arms(mean, active, leader):
    from duelay.inference.leader import find_leader

    assert find_leader(np.array(mean), np.array(active, dtype=bool)) == leader


@pytest.mark.compiled
def test_threads_may_share_a_player():
    import sys
    import threading

    player = duelay.RUCBDelay(window=6000).start(4, seed=0)  # one thread may wait for long
    duels, wrong, kept = [], [], sys.getswitchinterval()

    def ask_and_tell():
        try:
            for _ in range(3000):
                duel = player.ask()
                duels.append(duel)
                if duel.id % 2:
                    wrong.extend(answer for answer in [player.tell(duel)] if answer != "counted")
        except BaseException as error:
            wrong.append(error)

    def look():
        for _ in range(50):
            player.standing()
            pickle.dumps(player)

    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=target) for target in (ask_and_tell, ask_and_tell, look)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(kept)
    assert wrong == []
    assert sorted(duel.id for duel in duels) == list(range(6000))
    assert player.standing().plays.sum() == 6000 and player.standing().conversions.sum() == 3000


@pytest.mark.long
def test_a_player_resumes_from_a_pickle_in_another_process(tmp_path):
    import subprocess
    import sys

    player = duelay.RUCBDelay().start(5, seed=1)
    for _ in range(50):
        player.tell(player.ask())
    path = tmp_path / "player.pickle"
    path.write_bytes(pickle.dumps(player))
    code = (
        "import pickle, sys; p = pickle.load(open(sys.argv[1], 'rb'));"
        "print([tuple(p.ask()) for _ in range(20)])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == str([tuple(player.ask()) for _ in range(20)])
    assert copy.copy(player).ask() == player.ask()


@pytest.mark.long
def test_two_hundred_arms_and_two():
    for k in (2, 200):
        player = duelay.RUCBDelay(delay=delays.Geometric(0.5), window=10).start(k, seed=0)
        for _ in range(30):
            player.tell(player.ask())
        assert player.standing().mean.shape == (k, k)


WITHOUT_SELF_DUELS = [
    duelay.RUCB(self_duels=False),
    duelay.RUCBDelay(delay=delays.Geometric(0.2), window=20, alpha=0.51, self_duels=False),
    duelay.RRDBDelay(delay=delays.Geometric(0.2), window=20, delta=0.5, self_duels=False),
    duelay.MRRDBDelay(schedule=(30, 60), horizon=10**5, self_duels=False),
    duelay.MRRDBDelay(schedule=(60, 120), horizon=10**5, feedback="counts", self_duels=False),
    duelay.DoubleThompson(self_duels=False),
    duelay.DoubleThompson(delay="learn", window=20, self_duels=False),
    duelay.RMED(self_duels=False),
    duelay.Borda(delay=delays.Geometric(0.2), delta=0.5, self_duels=False),
]


@pytest.mark.long
@pytest.mark.parametrize("policy", WITHOUT_SELF_DUELS, ids=str)
@pytest.mark.parametrize("n_arms", [2, 4])
def test_without_self_duels_two_different_arms_are_shown_live_and_simulated(policy, n_arms):
    problem, law = bradley_terry([60, 9, 3, 1][:n_arms]), delays.Geometric(0.2)
    horizon = 1200
    duels = live_duels(policy, problem, law, horizon)
    assert all(first != second for first, second in duels)
    result = duelay.simulate(problem, policy, delay=law, horizon=horizon, runs=1, seed=0)
    counts = np.zeros((n_arms, n_arms))
    for duel in duels:
        counts[duel] += 1
    assert np.array_equal(result.plays[0], counts)
    free = dataclasses.replace(policy, self_duels=True)
    assert any(first == second for first, second in live_duels(free, problem, law, horizon))


@pytest.mark.long
def test_the_strongest_rival_takes_the_second_place():
    problem = duelay.Problem([[0.5, 0.9, 0.6], [0.1, 0.5, 0.5], [0.4, 0.5, 0.5]])
    policy = duelay.DoubleThompson(self_duels=False)
    result = duelay.simulate(problem, policy, delay="constant:1", horizon=3000, runs=4, seed=0)
    together = result.plays + result.plays.transpose(0, 2, 1)
    assert (together[:, 0, 2] > 0.9 * 3000).all()


def test_a_plain_policy_can_do_without_self_duels_too():
    class Alone(duelay.Policy):
        self_duels = False

        def choose(self, ledger, t, rng):
            return 1, 1

    player = Alone().start(3, seed=0)
    assert {(player.ask().first, player.ask().second) for _ in range(20)} <= {(1, 0), (1, 2)}


def test_an_arm_against_itself_is_named_once_where_a_vote_is_refused():
    @dataclasses.dataclass(frozen=True)
    class Alone(duelay.Policy):
        def choose(self):
            return 1, 1

    player = Alone().start(2, seed=0, feedback="votes")
    with pytest.raises(ValueError, match="^winner .*got 7"):
        player.tell(player.ask(), winner=7)
