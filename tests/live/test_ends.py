"""How experiments end: verdicts with a margin, a budget, a date, and by hand."""

import random

import numpy as np
import pytest
from sqlalchemy import delete, select

import duelay
from duelay.assumptions import Finding
from duelay.errors import InvalidValueError, PausedError
from duelay.live import Experiment, verify
from duelay.live.changes import make_change
from duelay.live.maintenance import Upkeep
from duelay.live.storage import schema
from live.hours import Hours, book_of, browser, settle, to_schema_five

TIED = np.full((3, 3), 0.5)


def make(store, arms=("a", "b"), *, policy=None, **said):
    """An experiment of votes, of which each is booked after a minute."""
    hours = Hours()
    policy = policy or duelay.Decide(window="1h", wait="1m", self_duels=False, error=0.2)
    said = {"feedback": "votes", "freshness": 0, **said}
    experiment = Experiment.create(store, "x", list(arms), clock=hours, policy=policy, **said)
    experiment.writer._selector.rng = np.random.default_rng(0)
    return experiment, hours


def vote(experiment, hours, n, share=0.5, seed=0):
    """Ask and tell n duels at most; `share` is how often "a" beats another arm."""
    rng = np.random.default_rng(seed)
    for k in range(n):
        hours.pass_by(1)
        duel = experiment.ask()
        if duel.id is None:
            return k
        chance = 0.5 + (share - 0.5) * ((duel.first == "a") - (duel.second == "a"))
        experiment.tell(duel, "first" if rng.random() < chance else "second")
    return n


def test_where_one_arm_is_shown_a_verdict_says_the_margin_as_a_lift(store):
    hours, chance = Hours(), random.Random(3)
    said = {"window": "2h", "display": "one", "margin": 0.1, "clock": hours}
    with Experiment.create(store, "x", ["a", "b"], **said) as experiment:
        while (shown := experiment.ask()).id is not None:
            hours.now += 60
            if chance.random() < 0.9:
                experiment.tell(shown.id)
        standing = experiment.standing()
        with experiment.store.reading() as connection:
            told = connection.execute(select(schema.events.c.words)).scalars().all()
    assert standing.verdict == "equivalent"
    for words in (standing.verdict_words, standing.headline, standing.summary.text, *told):
        assert "a lift of 50 %" in words and "points" not in words and " duels" not in words


def test_an_end_with_an_alarm_says_what_visitors_are_shown(store):
    experiment, hours = make(store, margin=0.2)
    alarm = Finding("order balance", 9.0, 1e-9, 500, True, "a is always first.")
    summary = experiment.standing().with_alarms((alarm,)).summary
    assert "all visitors" not in summary.text, "it has not ended"
    vote(experiment, hours, 1000)
    standing = experiment.standing().with_alarms((alarm,))
    shown = f"all visitors are shown {standing.choice}, because of this verdict: "
    assert shown + standing.verdict_words in standing.summary.text
    assert standing.summary.headline != summary.headline, "it is too late not to decide"
    experiment.finish("b")
    summary = experiment.standing().with_alarms((alarm,)).summary
    assert "Finished: b is shown to all visitors." in summary.sentences


def events(experiment):
    with experiment.store.reading() as connection:
        rows = connection.execute(select(schema.events).order_by(schema.events.c.id)).all()
    return [(row.kind, row.about) for row in rows]


def test_equal_arms_end_as_equivalent_and_the_leader_is_shown(store):
    experiment, hours = make(store, margin=0.2)
    assert vote(experiment, hours, 1000) < 400
    standing = experiment.standing()
    assert standing.verdict == "equivalent" and standing.winner is None
    for name in "ab":
        assert name in standing.verdict_words and name in standing.headline
    assert "20 points" in standing.verdict_words
    shown = experiment.ask()
    assert shown == (None, None, None, True, standing.choice) and shown.winner in ("a", "b")
    assert Experiment.open(store, "x", clock=hours).ask() == shown
    assert events(experiment) == [("equivalent", standing.choice)]
    assert verify(store) == ()


def test_arms_that_are_clearly_worse_are_named_apart(store):
    experiment, hours = make(store, ["a", "b", "bad"], margin=0.2)
    rng, n = np.random.default_rng(0), 0
    while experiment.standing().verdict == "running":
        hours.pass_by(1)
        duel, n = experiment.ask(), n + 1
        if duel.id is None:
            break
        bad = "bad" in duel[1:3]
        first_wins = duel.second == "bad" if bad else rng.random() < 0.5
        experiment.tell(duel, "first" if first_wins else "second")
    standing = experiment.standing()
    assert standing.verdict == "equivalent" and n < 1000
    assert f"{standing.choice} beats bad" in standing.verdict_words


def test_an_arm_that_is_good_enough_may_still_win(store):
    experiment, hours = make(store, margin=0.2, end="good_enough", share=1.0)
    vote(experiment, hours, 80, 1.0)
    ends = events(experiment)
    assert ends[-1] == ("declared", "a") and set(ends) <= {("good_enough", "a"), ("declared", "a")}
    assert experiment.standing().verdict == "winner" and verify(store) == ()


def test_one_that_is_good_enough_is_said_to_be(store):
    experiment, hours = make(store, margin=0.2, end="good_enough")
    assert vote(experiment, hours, 1000) < 300
    standing = experiment.standing()
    assert standing.verdict == "good_enough" and standing.winner is None
    assert events(experiment) == [("good_enough", standing.choice)]
    assert standing.verdict_words.startswith(f"choose {standing.choice}")
    assert experiment.history().declared is None, "nobody has won"
    assert verify(store) == ()


def test_two_processes_agree_on_an_end(store):
    one, hours = make(store, margin=0.2)
    other = Experiment.open(store, "x", clock=hours, freshness=0)
    k = 0
    while vote((one, other)[k % 2], hours, 1, seed=k):
        k += 1
        assert k < 1000
    first, second = one.standing(), other.standing()
    assert first.verdict == second.verdict != "running" and first.choice == second.choice
    np.testing.assert_array_equal(book_of(one).eprocess.best_bar, first.eprocess.best_bar)
    assert verify(store) == ()


def test_a_store_that_was_folded_still_has_its_ends(store):
    experiment, hours = make(store, ["a", "b", "c"], margin=0.1, forget_after="1h")
    vote(experiment, hours, 200)
    hours.pass_by(3700)
    vote(experiment, hours, 30, seed=1)
    state = book_of(experiment)
    assert state.head["forgotten"] > 150 and state.eprocess.tie_wealth.any()
    assert verify(store) == ()
    with experiment.store.writing() as connection:
        connection.execute(schema.pairs.update().values(tie_far=schema.pairs.c.tie_far + 1.0))
    assert any("tie_far" in words for words in verify(store))


def test_a_recount_notices_what_a_margin_adds(store):
    experiment, hours = make(store, margin=0.2)
    vote(experiment, hours, 60)
    table = schema.pairs
    for change, words in (
        ({"tie_near": table.c.tie_near + 0.01}, "tie_near of"),
        ({"best_bar": table.c.best_bar + 5}, "the most that the evidence of"),
        ({"log_bar": table.c.best_bar + 1}, "is above the most that it ever was"),
    ):
        opened = duelay.live.Store(store)
        before = book_of(experiment)
        with opened.writing() as connection:
            connection.execute(table.update().values(change))
        assert any(words in sentence for sentence in verify(store)), change
        with opened.writing() as connection:
            for i, j in ((0, 1), (1, 0)):
                values = {name: float(before.array(name)[i, j]) for name in
                          ("tie_near", "best_bar", "log_bar")}  # fmt: skip
                place = (table.c.first == i) & (table.c.second == j)
                connection.execute(table.update().where(place).values(values))
        assert verify(store) == ()
        opened.close()


def test_arms_come_and_go_with_a_margin(store):
    experiment, hours = make(store, ["a", "b", "c"], margin=0.2)
    experiment.retire_arm("c")
    vote(experiment, hours, 1000)
    assert experiment.standing().verdict == "equivalent"
    experiment.add_arm("d")
    assert experiment.standing().verdict == "running"
    assert events(experiment)[-1][0] == "withdrawn"
    k = vote(experiment, hours, 1000, seed=1)
    standing = experiment.standing()
    assert 0 < k < 1000 and standing.verdict == "equivalent"
    assert " c " not in f" {standing.verdict_words} ", "it is retired"
    assert verify(store) == ()


# Budget and date.


def test_a_budget_is_spent_to_the_duel_and_the_leader_is_shown(store):
    experiment, hours = make(store, budget=25)
    assert vote(experiment, hours, 100, 0.6) == 25
    standing = experiment.standing()
    assert standing.tick == 25 and standing.verdict == "undecided" and standing.winner is None
    assert experiment.ask() == (None, None, None, True, standing.arms[standing.leader])
    assert standing.p_value is not None and 0.2 < standing.p_value <= 1.0
    assert "budget of 25" in standing.headline and "p = " in standing.headline
    assert events(experiment) == [("undecided", standing.choice)]


def test_a_batch_of_asks_does_not_exceed_the_budget(store):
    experiment, _ = make(store, budget=5)
    asks = [duelay.live.writes.requests.Ask(None, None) for _ in range(9)]
    experiment.submit_all(asks)
    assert [ask.result.id is None for ask in asks] == [False] * 5 + [True] * 4


def test_open_duels_may_still_decide_when_the_budget_is_spent(store):
    experiment, hours = make(store, budget=30)
    duels = [experiment.ask() for _ in range(30)]
    hours.pass_by(1)
    assert experiment.ask().settled and experiment.standing().verdict == "undecided"
    for duel in duels:
        experiment.tell(duel, "a")
    assert "open duels may still decide" not in experiment.standing().headline
    hours.pass_by(60)
    standing = experiment.standing()
    assert standing.verdict == "winner" and standing.winner == 0
    assert experiment.ask().winner == "a" and verify(store) == ()
    assert [kind for kind, _ in events(experiment)] == ["undecided", "declared"]


def test_a_date_ends_it_without_a_call(store):
    experiment, hours = make(store, until="2h")
    vote(experiment, hours, 10)
    hours.pass_by(7200)
    assert experiment.standing().verdict == "undecided", "a reader sees it"
    assert events(experiment) == []
    assert Upkeep(store, clock=hours).settle() == {}
    assert [kind for kind, _ in events(experiment)] == ["undecided"]
    assert experiment.ask().settled
    assert Upkeep(store, clock=hours).settle() == {}
    assert len(events(experiment)) == 1


def test_an_experiment_that_cannot_be_read_keeps_no_other_from_its_end(store):
    broken, hours = make(store, until="2h")
    other = Experiment.create(store, "other", ["a", "b"], until="2h", clock=hours)
    with broken.writing() as connection:
        connection.execute(delete(schema.arms).where(schema.arms.c.experiment == broken.id))
    hours.pass_by(7201.0)
    assert list(Upkeep(store, clock=hours).settle()) == [broken.name]
    assert other.standing().verdict == "undecided" and len(events(other)) == 1


@pytest.mark.parametrize(
    ("said", "argument"),
    [({"margin": 0.5}, "margin"), ({"margin": -1}, "margin"), ({"end": "equivalent"}, "end"),
     ({"margin": 0.1, "end": "soon"}, "end"), ({"budget": 0}, "budget"),
     ({"until": 5.0}, "until"), ({"until": 1e12}, "until"), ({"until": 1e300}, "until"),
     ({"until": "9999-12-31T23:59:59-23:59"}, "until"),
     ({"until": "soon"}, "until"), ({"until": "2020-01-01"}, "until"),
     ({"fallback": "z"}, "fallback"), ({"margin": "5%"}, "margin"), ({"margin": "5"}, "margin"),
     ({"margin": "0%", "display": "one"}, "margin"), ({"margin": "x%", "display": "one"}, "margin"),
     ({"margin": 0.2, "policy": "decide:margin=0.1"}, "margin"),
     ({"margin": 0.1, "end": "good_enough", "policy": "decide:margin=0.1"}, "end")],
)  # fmt: skip
def test_what_cannot_be_is_refused(store, said, argument):
    with pytest.raises(InvalidValueError, match=f"^{argument}"):
        Experiment.create(store, "x", ["a", "b"], **said)


def test_a_policy_may_say_the_margin(store):
    text = "decide:margin=0.1,end=good_enough"
    experiment = Experiment.create(store, "x", ["a", "b"], policy=text)
    found = book_of(experiment).eprocess
    assert found.margin == 0.1 and not found.is_two_sided
    other = Experiment.create(store, "y", ["a", "b"], margin=0.1, end="good_enough", goal="regret")
    assert book_of(other).eprocess.margin == 0.1
    assert Experiment.open(store, "x").policy.margin == 0.1


def test_a_margin_of_an_ab_test_may_be_a_lift(store):
    one = Experiment.create(store, "x", ["a", "b"], display="one", margin="5%")
    expected = 1.05 / 2.05 - 0.5  # the share of the conversions that are the better arm's
    assert one.policy.margin == pytest.approx(expected)
    assert book_of(one).eprocess.margin == pytest.approx(expected)
    assert one.standing().evidence.margin == pytest.approx(expected)
    other = Experiment.create(store, "y", ["a", "b"], display="one", margin=0.02)
    assert other.policy.margin == 0.02


# By hand.


def test_finish_shows_an_arm_for_ever_and_answers_still_count(store):
    experiment, hours = make(store)
    duel = experiment.ask(unit="v")
    experiment.finish("b")
    assert experiment.status == "finished"
    other = Experiment.open(store, "x", clock=hours)
    for each in (experiment, other):
        assert each.ask(unit="v") == (None, None, None, True, "b")
    assert experiment.tell(duel, "a") == "counted"
    assert experiment.standing().conversions.sum() + 1 >= 1 and experiment.standing().heard == 1
    experiment.finish("a")
    assert other.ask().winner == "a" and "finished with a" in other.standing().headline
    with pytest.raises(InvalidValueError, match="^status"):
        experiment.pause()
    experiment.reopen()
    assert experiment.status == "running" and experiment.ask(unit="w").id is not None
    assert [kind for kind, _ in events(experiment)] == ["finished", "finished", "reopened"]
    with pytest.raises(InvalidValueError, match="^arm"):
        experiment.finish("z")
    assert verify(store) == ()


def test_the_arm_that_everybody_is_shown_cannot_be_retired(store):
    experiment, _ = make(store, ["a", "b", "c"])
    experiment.finish("b")
    with pytest.raises(InvalidValueError, match="is finished, 'b'"):
        experiment.retire_arm("b")
    experiment.retire_arm("a")
    assert experiment.ask().winner == "b"
    experiment.reopen()
    experiment.add_arm("a")
    experiment.retire_arm("b")
    assert "b" not in experiment.ask()[1:3]


def test_by_default_the_winner_or_the_leader_is_the_arm(store):
    experiment, hours = make(store)
    vote(experiment, hours, 12, 1.0)
    experiment.finish()
    assert experiment.ask().winner == experiment.standing().choice == "a"
    hours.pass_by(7200)
    settle(experiment)
    assert experiment.standing().verdict in ("running", "winner"), "the record goes on"


def test_an_archive_hides_what_is_finished(store):
    experiment, _ = make(store)
    with pytest.raises(InvalidValueError, match="^archived"):
        experiment.archive()
    experiment.finish()
    experiment.archive()
    assert Experiment.names(store, archived=False) == () and Experiment.names(store) == ("x",)
    assert experiment.ask().settled, "it still answers"
    experiment.archive(archived=False)
    assert Experiment.names(store, archived=False) == ("x",)
    experiment.archive()
    experiment.reopen()
    assert Experiment.names(store, archived=False) == ("x",)


def test_a_name_that_is_no_arm_is_named_before_anything_else(url):
    """Also where the change could not be made with a right name."""
    experiment, _ = make(url, arms=("green", "blue"))
    experiment.finish("green")
    for argument, call in (
        ("fallback", lambda: experiment.pause(fallback="gren")),
        ("arm", lambda: experiment.finish("gren")),
        ("arm", lambda: experiment.submit(make_change(status="paused", arm="gren"))),
        ("name", lambda: experiment.retire_arm("gren")),
    ):
        with pytest.raises(InvalidValueError, match=f"^{argument} .*'gren'.*mean green") as raised:
            call()
        assert raised.value.argument == argument
    with pytest.raises(InvalidValueError, match="name"):
        experiment.retire_arm(["green"])


def test_a_pause_answers_with_the_fallback(store):
    experiment, hours = make(store, fallback="b")
    duel = experiment.ask()
    experiment.pause()
    assert experiment.ask() == (None, None, None, True, "b")
    assert experiment.standing().choice == "b" and experiment.tell(duel, "a") == "counted"
    with pytest.raises(InvalidValueError, match="^fallback"):
        experiment.add_arm("c"), experiment.retire_arm("b")
    experiment.pause(fallback="a")
    assert Experiment.open(store, "x", clock=hours).ask().winner == "a"
    experiment.resume()
    assert experiment.ask().id is not None and experiment.standing().choice is None


def test_without_a_fallback_a_pause_is_an_error_until_there_is_a_verdict(store):
    experiment, hours = make(store, budget=3)
    experiment.pause()
    with pytest.raises(PausedError):
        experiment.ask()
    experiment.resume()
    vote(experiment, hours, 3)
    experiment.pause()
    assert experiment.ask().settled


def test_the_arms_differences_are_said_while_it_runs(store):
    experiment, hours = make(store)
    assert experiment.standing().verdict_words == ""
    rng = np.random.default_rng(3)
    for _ in range(3):
        duels = [duelay.live.writes.requests.Ask(None, None) for _ in range(400)]
        experiment.submit_all(duels)
        experiment.tell_all([(ask.result, "first" if rng.random() < 0.5 else "second")
                             for ask in duels if ask.result.id])  # fmt: skip
        hours.pass_by(100)
    standing = experiment.standing()
    assert standing.verdict == "running" and "by at most" in standing.verdict_words
    widest = 100 * np.abs(np.array([standing.lower[0, 1], standing.upper[0, 1]]) - 0.5).max()
    assert f"{widest:.2g} points" in standing.verdict_words


def test_browsers_see_the_same_end_whatever_is_told(store):
    experiment = Experiment.create(
        store, "x", ["a", "b", "c"], clock=(hours := Hours()), window="1h", margin=0.3, error=0.2
    )
    assert browser(experiment, hours, 3000, TIED, mean=60.0) < 3000
    assert experiment.standing().verdict == "equivalent" and verify(store) == ()


@pytest.mark.parametrize("share", [0.5, 1.0], ids=["running", "declared"])
def test_a_store_of_an_earlier_schema_has_no_ends_and_keeps_its_winner(store, share):
    experiment, hours = make(store)
    vote(experiment, hours, 100, share)
    before = experiment.standing()
    to_schema_five(experiment.store)
    duelay.live.Store(store).migrate()
    after = Experiment.open(store, "x", clock=hours)
    standing = after.standing()
    assert standing.verdict == before.verdict == ("winner" if share == 1.0 else "running")
    assert standing.winner == before.winner and standing.tick == before.tick
    assert verify(store) == ()
    after.finish("b")
    assert after.ask().winner == "b"
