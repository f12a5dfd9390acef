"""Every address of the service: what it answers, what it refuses, and in which words."""

import json
import logging
import re
import threading

import pytest
from sqlalchemy import select

from duelay import service
from duelay.live import Experiment, verify
from duelay.live.storage import schema
from duelay.live.storage.schema import MICRO
from duelay.service import app as app_of
from duelay.service import keys as keys_of
from duelay.service import middleware

DAY = 86_400.0


def ask(client, name="buttons", headers=None, **body):
    return client.post(f"/experiments/{name}/duels", json=body or None, headers=headers)


def is_refused(response, status, words):
    """Whether something is refused in the one shape, and in these words."""
    assert response.headers["content-type"] == "application/json"
    found = response.json()
    assert list(found) == ["error"] and re.search(words, found["error"]), found
    return response.status_code == status


def store_of(client):
    return client.app.state.context.store


# Experiments.


def test_an_experiment_is_made_listed_read_and_deleted(client):
    made = client.post("/experiments", json={
        "name": "two models", "arms": ["old", "new", "newest"], "goal": "regret",
        "feedback": "votes", "window": "3d", "error": 0.1, "share": 0.5, "forget_after": "30d",
    })  # fmt: skip
    assert made.status_code == 201
    assert made.json()["arms"] == ["old", "new", "newest"] and made.json()["feedback"] == "votes"
    listed = client.get("/experiments").json()["experiments"]
    assert [(each["name"], each["goal"], each["status"], each["duels"], each["answers"],
             each["winner"]) for each in listed] == [
        ("buttons", "decide", "running", 0, 0, None),
        ("two models", "regret", "running", 0, 0, None),
    ]  # fmt: skip
    found = client.get("/experiments/two models")
    assert found.status_code == 200 and found.json() == made.json()
    gone = client.delete("/experiments/two models")
    assert (gone.status_code, gone.content) == (204, b"")
    assert is_refused(client.get("/experiments/two models"), 404, "there is no such experiment")
    assert is_refused(client.get("/experiments/butons"), 404, "mean buttons.*there are: buttons")
    assert is_refused(client.delete("/experiments/two models"), 404, "there is no such")
    assert Experiment.names(store_of(client)) == ("buttons",)


def test_an_experiment_shows_one_arm_at_a_time(client):
    made = client.post(
        "/experiments", json={"name": "ab", "arms": ["red", "green"], "display": "one"}
    )
    assert made.status_code == 201 and made.json()["display"] == "one"
    duel = ask(client, "ab", unit="v").json()
    assert duel["arm"] == duel["first"] != duel["second"]
    assert "arm" not in ask(client).json()  # of a pair
    client.put(f"/duels/{duel['id']}/conversion")
    found, arms = client.get("/experiments/ab").json(), ["red", "green"]
    assert found["rates"]["conversions"][arms.index(duel["arm"])] == 1
    assert sum(found["rates"]["shown"]) == 1 and found["rates"]["rate"] == [None, None]
    assert client.get("/experiments/buttons").json()["rates"] is None
    wrong = {"name": "x", "arms": ["a", "b"], "display": "one", "feedback": "votes"}
    assert is_refused(client.post("/experiments", json=wrong), 422, "feedback must be conversions")


def test_a_standing_has_counts_and_estimates_from_the_store(client, hours):
    given = [ask(client).json() for _ in range(6)]
    for duel in given[:3]:
        client.put(f"/duels/{duel['id']}/conversion")
    arms, plays, wins = ["red", "green"], [[0, 0], [0, 0]], [[0, 0], [0, 0]]
    for n, duel in enumerate(given):
        first, second = arms.index(duel["first"]), arms.index(duel["second"])
        plays[first][second] += 1
        wins[first][second] += n < 3
    found = client.get("/experiments/buttons").json()
    assert (found["plays"], found["conversions"], found["duels"]) == (plays, wins, 6)
    assert found["error"] == 0.05 and found["winner"] is None and found["leader"] in arms
    assert set(found["estimates"]) == {"mean", "lower", "upper"}
    assert found["estimates"]["mean"][0][0] in (None, 0.5)
    assert 0.0 <= found["estimates"]["mean"][0][1] <= 1.0
    lower, upper = found["estimates"]["lower"][0][1], found["estimates"]["upper"][0][1]
    assert lower is upper is None, "no duel is booked yet"


def test_intervals_are_of_the_duels_that_are_booked(client, hours):
    made = {"name": "quick", "arms": ["red", "green"], "policy": "decide:wait=1m"}
    assert client.post("/experiments", json=made).status_code == 201
    given = [client.post("/experiments/quick/duels").json() for _ in range(6)]
    for duel in given[:3]:
        client.put(f"/duels/{duel['id']}/conversion")
    hours.pass_by(60)
    client.post("/experiments/quick/duels")
    found = client.get("/experiments/quick").json()
    lower, upper = found["estimates"]["lower"][0][1], found["estimates"]["upper"][0][1]
    shown = min(max(found["estimates"]["mean"][0][1], 0.0), 1.0)  # few duels may lead beyond
    assert 0.0 <= lower <= shown <= upper <= 1.0


def test_nobody_leads_before_anything_is_heard(client):
    found = client.get("/experiments/buttons").json()
    assert (found["leader"], found["winner"], found["duels"]) == (None, None, 0)


def test_a_name_that_is_taken_is_409(client):
    again = client.post("/experiments", json={"name": "buttons", "arms": ["a", "b"]})
    assert is_refused(again, 409, "there is an experiment 'buttons' already")


def test_a_name_that_is_taken_at_the_same_moment_is_409_and_does_not_name_the_store(
    client, monkeypatch
):
    from duelay.service import routes

    names, n = Experiment.names, iter([()])
    monkeypatch.setattr(routes.Experiment, "names", lambda store: next(n, None) or names(store))
    n = iter([("another",)])
    again = client.post("/experiments", json={"name": "buttons", "arms": ["a", "b"]})
    assert is_refused(again, 409, "there is an experiment 'buttons' already")


@pytest.mark.parametrize("name", ["a/b", "/", ".", ".."])
def test_a_name_that_no_address_can_have_is_refused(shared, name):
    made = shared.post("/experiments", json={"name": name, "arms": ["a", "b"]})
    assert is_refused(made, 422, "name must not have a slash")


@pytest.mark.parametrize("name", ["ü 100 %", "?x=1&y#z", "a b", "n" * 200, "日本", "a+b"])
def test_any_other_name_can_be_made_and_found(shared, name):
    from urllib.parse import quote

    assert shared.post("/experiments", json={"name": name, "arms": ["a", "b"]}).status_code == 201
    path = f"/experiments/{quote(name, safe='')}"
    assert shared.get(path).json()["name"] == name
    duel = shared.post(f"{path}/duels").json()
    assert shared.put(f"/duels/{duel['id']}/conversion").json()["status"] == "counted"
    assert shared.delete(path).status_code == 204


GOOD = {"name": "more", "arms": ["a", "b"]}


@pytest.mark.parametrize(("changed", "words"), [
    ({"name": ""}, "name: string should have at least 1"),
    ({"name": "n" * 201}, "name: string should have at most 200"),
    ({"name": "a\0b"}, "no NUL"),
    ({"name": 3}, "name: input should be a valid string"),
    ({"name": "  "}, "name must be a text"),
    ({"arms": ["a"]}, "arms: give at least 2"),
    ({"arms": ["a", "a"]}, "different names"),
    ({"arms": ["a", "b\0"]}, "no NUL"),
    ({"arms": ["a", "b" * 201]}, "arms.1: string should have at most 200"),
    ({"arms": ["a", 3]}, "arms.1: input should be a valid string"),
    ({"arms": [str(n) for n in range(1001)]}, "arms: list should have at most 1000"),
    ({"arms": "ab"}, "arms: input should be a valid list"),
    ({"goal": "win"}, "goal: input should be 'decide' or 'regret'"),
    ({"policy": "nothing"}, "unknown policy"),
    ({"policy": "p" * 1001}, "policy: string should have at most 1000"),
    ({"policy": "rr-db-delay:window=3d,delay=exponential:2h"}, "cannot serve many processes"),
    ({"policy": "decide:window=999999999999999d"}, "window must be at most 36500d"),
    ({"window": "999999999999999d"}, "window must be at most 36500d"),
    ({"window": "-3d"}, "window"),
    ({"window": "often"}, "window"),
    ({"window": 14}, "window: input should be a valid string"),
    ({"forget_after": "1d"}, "forget_after must be at least the window"),
    ({"lag": "soon"}, "lag"),
    ({"forget_after": "999999999999999d"}, "forget_after must be at most"),
    ({"feedback": "likes"}, "feedback: input should be 'conversions' or 'votes'"),
    ({"error": 0}, "error: input should be greater than 0"),
    ({"error": 1.0}, "error: input should be less than 1"),
    ({"error": float("nan")}, "error: input should be"),
    ({"error": "0.05"}, "error: input should be a valid number"),
    ({"share": float("inf")}, "share: input should be less"),
    ({"share": -1e308}, "share: input should be greater"),
    ({"self_duels": 1}, "self_duels: input should be a valid boolean"),
    ({"clock": "mine"}, "clock must be how many times as fast as the world it goes"),
    ({"clock": "0x"}, "clock must be"),
    ({"clock": "-5x"}, "clock must be"),
    ({"clock": "1e9x"}, "clock must be"),
    ({"clock": "9999999x"}, "clock must be"),
    ({"clock": 1000}, "clock: input should be a valid string"),
    ({"error": 9, "share": 9}, "error: .*, and 1 more"),
])  # fmt: skip
def test_an_experiment_that_is_not_right_is_422_and_says_why(shared, changed, words):
    made = shared.post("/experiments", content=json.dumps(GOOD | changed),
                       headers={"Content-Type": "application/json"})  # fmt: skip
    assert is_refused(made, 422, words)
    assert Experiment.names(store_of(shared)) == ("buttons",)


@pytest.mark.parametrize("speed", [None, "20x"])
def test_an_experiment_may_have_a_fast_clock_of_its_own(serve, url, speed):
    """The service may be told the speed for those that say nothing."""
    client = serve(url, clock_of_new=speed)
    for name, said in (("own", {"clock": "1000x"}), ("none", {})):
        made = client.post("/experiments", json={"name": name, "arms": ["a", "b"]} | said)
        assert made.status_code == 201
        id = client.post(f"/experiments/{name}/duels").json()["id"]
        assert client.put(f"/duels/{id}/conversion").json()["status"] == "counted"
    with store_of(client).reading() as connection:
        clocks = connection.execute(select(schema.experiments.c.clock)).scalars().all()
    assert clocks == ["1000x", speed]
    own = Experiment.open(url, "own")
    assert own.now() > own.created / MICRO


def test_booking_is_held_and_released(client):
    assert client.get("/experiments/buttons").json()["booking"] == "running"
    held = client.patch("/experiments/buttons", json={"booking": "held"}).json()
    assert held["booking"] == "held" and "booking is held" in held["headline"]
    assert ask(client).status_code == 200
    released = client.patch("/experiments/buttons", json={"booking": "running"}).json()
    assert released["booking"] == "running" and "held" not in released["headline"]


def test_an_experiment_is_made_with_its_ends(client):
    ends = {"margin": 0.05, "end": "good_enough", "budget": 2, "until": "30d", "fallback": "b"}
    made = client.post("/experiments", json={"name": "x", "arms": ["a", "b"], **ends})
    assert made.status_code == 201
    found = made.json()
    assert {name: found[name] for name in ("margin", "end", "budget", "fallback")} == {
        name: ends[name] for name in ("margin", "end", "budget", "fallback")
    }
    assert found["until"] == pytest.approx(found["now"] + 30 * DAY)
    assert (found["verdict"], found["choice"]) == ("running", None)
    duels = ask(client, "x", count=4).json()["duels"]
    assert [duel["id"] is None for duel in duels] == [False, False, True, True]
    found = client.get("/experiments/x").json()
    assert found["verdict"] == "undecided" and found["choice"] == duels[3]["winner"]
    listed = client.get("/experiments?search=x").json()["experiments"][0]
    assert (listed["winner"], listed["verdict"]) == (None, "running"), "until it is written"
    lift = {"name": "lift", "arms": ["a", "b"], "display": "one", "margin": "5%"}
    found = client.post("/experiments", json=lift).json()
    assert found["margin"] == pytest.approx(1.05 / 2.05 - 0.5)
    for name, wrong in (("margin", 0.6), ("margin", "5%"), ("end", "soon"), ("budget", 0),
                        ("until", "soon"),
                        ("until", "2020-01-01T00:00Z"), ("fallback", "z")):  # fmt: skip
        body = {"name": "y", "arms": ["a", "b"], name: wrong}
        assert is_refused(client.post("/experiments", json=body), 422, f"^{name}")


def test_it_is_finished_archived_and_reopened(client):
    def patch(**said):
        return client.patch("/experiments/buttons", json=said)

    duel = ask(client).json()
    assert is_refused(patch(arm="green"), 422, "^arm")
    assert is_refused(patch(archived=True), 422, "^archived")
    found = patch(status="finished", arm="green").json()
    assert (found["status"], found["choice"]) == ("finished", "green")
    assert patch(status="finished").json()["choice"] == "green", "once more changes nothing"
    shown = {"id": None, "first": None, "second": None, "settled": True, "winner": "green"}
    assert ask(client).json() == shown
    assert client.put(f"/duels/{duel['id']}/conversion").json()["status"] == "counted"
    assert is_refused(patch(status="paused"), 422, "^status")
    assert patch(archived=True).json()["archived"] is True
    assert client.get("/experiments").json() == {"experiments": []}
    archived = client.get("/experiments?status=archived").json()["experiments"]
    assert [(each["name"], each["finished_with"]) for each in archived] == [("buttons", "green")]
    found = patch(status="running").json()
    assert (found["status"], found["archived"], found["choice"]) == ("running", False, None)
    assert ask(client).json()["id"] is not None


def test_a_refused_change_names_no_arm_that_it_would_have_added(client):
    for body in ({"retire_arms": ["pink"]}, {"fallback": "pink"},
                 {"status": "finished", "arm": "pink"}):  # fmt: skip
        refused = client.patch("/experiments/buttons", json={"add_arms": ["blue"], **body})
        assert is_refused(refused, 422, r"\['red', 'green'\]"), body
    assert client.get("/experiments/buttons").json()["arms"] == ["red", "green"]


def test_a_pause_with_a_fallback_answers_with_it(client):
    said = {"status": "paused", "fallback": "red"}
    assert client.patch("/experiments/buttons", json=said).json()["choice"] == "red"
    assert ask(client).json()["winner"] == "red"
    assert is_refused(client.patch("/experiments/buttons", json={"fallback": "z"}), 422, "fallback")


def test_it_is_paused_and_resumed_and_answers_are_heard_meanwhile(client):
    duel = ask(client).json()
    assert client.patch("/experiments/buttons", json={"status": "paused"}).json()["status"] == (
        "paused"
    )
    assert is_refused(ask(client), 409, "'buttons' is paused")
    assert is_refused(ask(client, count=3), 409, "'buttons' is paused.*PATCH")
    assert "resume()" not in ask(client).text
    assert client.put(f"/duels/{duel['id']}/conversion").json()["status"] == "counted"
    assert client.patch("/experiments/buttons", json={"status": "running"}).status_code == 200
    assert ask(client).status_code == 200


def test_arms_come_and_go(client):
    found = client.patch("/experiments/buttons", json={"add_arms": ["blue", "red"]}).json()
    assert found["arms"] == ["red", "green", "blue"] and found["present"] == [True] * 3
    found = client.patch("/experiments/buttons", json={"retire_arms": ["red"]}).json()
    assert found["present"] == [False, True, True]
    shown = [ask(client).json() for _ in range(10)]
    assert {arm for duel in shown for arm in (duel["first"], duel["second"])} == {"green", "blue"}
    for words, body in [("two arms must stay", {"retire_arms": ["blue"]}),
                        ("there is no arm 'pink'", {"retire_arms": ["pink"]}),
                        ("status: input should be", {"status": "over"}),
                        ("margin: .*bets .*begin with the first duel", {"margin": 0.05}),
                        ("window: it is said when", {"window": "1d"}),
                        ("arms: say add_arms", {"arms": ["red", "pink"]}),
                        (r"^arm must .*no arm 'gren' \(did you mean green",
                         {"status": "finished", "arm": "gren"}),
                        ("^fallback must .*no arm 'pink'",
                         {"status": "paused", "fallback": "pink"}),
                        ("no NUL", {"add_arms": ["x\0"]}),
                        ("winner: extra inputs", {"winner": "red"})]:  # fmt: skip
        assert is_refused(client.patch("/experiments/buttons", json=body), 422, words)
    assert is_refused(client.patch("/experiments/nothing", json={}), 404, "no such experiment")


# Asking.


def test_a_duel_has_an_id_two_arms_and_is_not_settled(client):
    found = ask(client).json()
    assert list(found) == ["id", "first", "second", "settled", "winner"]
    assert {found["first"], found["second"]} == {"red", "green"}
    assert (found["settled"], found["winner"]) == (False, None)


def test_ids_of_duels_cannot_be_guessed_from_each_other(client):
    ids = [duel["id"] for duel in ask(client, count=100).json()["duels"]]
    assert len(set(ids)) == 100
    assert len({id[10:] for id in ids}) == 100  # after the time there are 80 random bits


def test_several_duels_are_asked_at_once(client):
    found = ask(client, count=7).json()
    assert list(found) == ["duels"] and len({duel["id"] for duel in found["duels"]}) == 7
    assert len(ask(client, count=1).json()["duels"]) == 1
    assert client.get("/experiments/buttons").json()["duels"] == 8


@pytest.mark.parametrize(("body", "words"), [
    ('{"count": 0}', "count: input should be greater"),
    ('{"count": 101}', "count: input should be less"),
    ('{"count": 2.0}', "count: input should be a valid integer"),
    ('{"count": true}', "count: input should be a valid integer"),
    ('{"count": 1e999}', "count: input should be a valid integer"),
    ('{"count": NaN}', "count: input should be a valid integer"),
    ('{"count": "2"}', "count: input should be a valid integer"),
    ('{"count": %s}' % ("9" * 30), "count: input should be less"),
    ('{"count": %s}' % ("9" * 5000), "count: |the body: it is not JSON"),
    ('{"count": 2, "unit": "u"}', "leave count or unit out"),
    ('{"unit": ""}', "unit: string should have at least 1"),
    ('{"unit": "  "}', "unit must be a text"),
    ('{"unit": "%s"}' % ("u" * 201), "unit: string should have at most 200"),
    ('{"unit": "a\\u0000"}', "no NUL"),
    ('{"unit": "\\ud800"}', "unit: input should be a valid string|the body: it is not JSON"),
    ('{"unit": 17}', "unit: input should be a valid string"),
    ('{"units": "u"}', "units: extra inputs"),
    ("[]", "the body: input should be"),
    ('"buttons"', "the body: input should be"),
    ("{", "json"),
    ("[" * 100_000, "the body: it is not JSON"),
    (b'{"unit": "\xff"}', "the body: it is not JSON"),
])  # fmt: skip
def test_a_question_that_is_not_right_is_422_and_asks_nothing(shared, body, words):
    before = shared.get("/experiments/buttons").json()["duels"]
    asked = shared.post("/experiments/buttons/duels", content=body,
                        headers={"Content-Type": "application/json"})  # fmt: skip
    assert is_refused(asked, 422, f"(?i){words}")
    assert shared.get("/experiments/buttons").json()["duels"] == before


def test_with_the_same_idempotency_key_it_is_the_same_duel(client):
    mine, yours = {"Idempotency-Key": "k" * 196}, {"Idempotency-Key": "another"}
    first = ask(client, headers=mine).json()
    assert ask(client, headers=mine).json() == first
    assert ask(client, headers=yours).json()["id"] != first["id"]
    assert ask(client).json()["id"] != ask(client).json()["id"]
    several = ask(client, count=5, headers={"Idempotency-Key": "several"}).json()
    assert ask(client, count=5, headers={"Idempotency-Key": "several"}).json() == several
    assert client.get("/experiments/buttons").json()["duels"] == 9
    assert is_refused(ask(client, headers={"Idempotency-Key": "k" * 197}), 422, "most 196")


def test_a_unit_gets_its_open_duel_again_and_counts_once(client):
    first = ask(client, unit="ann").json()
    assert ask(client, unit="ann").json() == first
    client.put(f"/duels/{first['id']}/conversion")
    second = ask(client, unit="ann").json()
    assert second["id"] != first["id"]
    client.put(f"/duels/{second['id']}/conversion")
    found = client.get("/experiments/buttons").json()
    assert (found["duels"], sum(map(sum, found["repeats"]))) == (2, 1)


def test_once_a_winner_is_declared_it_says_settled_and_the_winner_alone(client):
    client.post("/experiments", json={"name": "v", "arms": ["old", "new"], "feedback": "votes"})
    for _ in range(3):
        duels = [each["id"] for each in ask(client, "v", count=20).json()["duels"]]
        answers = [{"id": id, "winner": "new"} for id in duels]
        told = client.post("/experiments/v/answers", json={"answers": answers})
        assert told.status_code == 200
        if client.get("/experiments/v").json()["winner"] is not None:
            break
    alone = {"id": None, "first": None, "second": None, "settled": True, "winner": "new"}
    assert ask(client, "v").json() == alone
    assert ask(client, "v", count=2).json() == {"duels": [alone, alone]}
    assert client.get("/experiments/v").json()["winner"] == "new"
    assert client.get("/experiments").json()["experiments"][1]["winner"] == "new"


def test_asking_what_is_not_there_is_404(client):
    for path in ("nothing", "buttons%00", "%FF", "buttons%20"):
        assert is_refused(client.post(f"/experiments/{path}/duels"), 404, "no such experiment")


# Telling.


def test_a_conversion_counts_once(client):
    duel = ask(client).json()
    path = f"/duels/{duel['id']}/conversion"
    assert client.put(path).json() == {"id": duel["id"], "status": "counted"}
    assert client.put(path).json() == {"id": duel["id"], "status": "repeated"}
    assert client.put(path, json={}).json()["status"] == "repeated"
    assert sum(map(sum, client.get("/experiments/buttons").json()["conversions"])) == 1
    assert verify(store_of(client)) == ()


def test_after_the_window_an_answer_is_late_and_not_counted(client, hours):
    duel, other = ask(client).json(), ask(client).json()
    at = hours.now + 1.0
    hours.pass_by(15 * DAY)
    path = f"/duels/{duel['id']}/conversion"
    assert [client.put(path).json()["status"] for _ in range(2)] == ["late", "late"]
    heard = client.put(f"/duels/{other['id']}/conversion", json={"at": at})
    assert heard.json()["status"] == "counted"  # it was heard in time
    found = client.get("/experiments/buttons").json()
    assert sum(map(sum, found["conversions"])) == 1 and found["late"] == 1


def test_the_first_vote_stands(client):
    client.post("/experiments", json={"name": "v", "arms": ["old", "new"], "feedback": "votes"})
    first, second, third = ask(client, "v", count=3).json()["duels"]
    for duel, winner in ((first, "first"), (second, "new"), (third, "tie")):
        told = client.put(f"/duels/{duel['id']}/vote", json={"winner": winner})
        assert told.json() == {"id": duel["id"], "status": "counted"}
    again = client.put(f"/duels/{first['id']}/vote", json={"winner": "second"})
    assert again.json()["status"] == "repeated"
    rows = client.get("/experiments/v/log").json()["duels"]
    assert [row["first_won"] for row in rows] == [1.0, float(second["first"] == "new"), 0.5]
    fourth = ask(client, "v").json()["id"]
    for body, words in (({"winner": "nobody"}, "winner must be 'first'"), ({}, "winner: field req"),
                        ({"winner": None}, "winner: input"), ({"winner": ""}, "winner: string"),
                        ({"winner": "w" * 201}, "winner: string")):  # fmt: skip
        assert is_refused(client.put(f"/duels/{fourth}/vote", json=body), 422, words)
    assert is_refused(client.put(f"/duels/{fourth}/conversion"), 422, "winner must be 'first'")


def test_a_vote_is_refused_where_only_conversions_are_told(client):
    duel = ask(client).json()["id"]
    assert is_refused(client.put(f"/duels/{duel}/vote", json={"winner": "second"}), 422,
                      "feedback='votes'")  # fmt: skip
    assert client.put(f"/duels/{duel}/vote", json={"winner": "first"}).json()["status"] == "counted"


@pytest.mark.parametrize("at", ["NaN", "Infinity", "-Infinity", "1e308", "1e12", '"now"', "true",
                                "9" * 400, "9" * 5000, "[]"])  # fmt: skip
def test_a_time_that_is_none_or_in_the_future_is_422(shared, at):
    duel = ask(shared).json()["id"]
    told = shared.put(f"/duels/{duel}/conversion", content=f'{{"at": {at}}}',
                      headers={"Content-Type": "application/json"})  # fmt: skip
    assert is_refused(told, 422, "^at|the body: it is not JSON")
    assert shared.put(f"/duels/{duel}/conversion").json()["status"] == "counted"


@pytest.mark.parametrize("at", [-1e308, -1e15, 0, -0.0, 5e-324])
def test_a_time_before_the_duel_is_refused(client, at):
    duel = ask(client).json()["id"]
    told = client.put(f"/duels/{duel}/conversion", json={"at": at})
    assert is_refused(told, 422, "before the duel was asked")
    (row,) = client.get("/experiments/buttons/log").json()["duels"]
    assert row["answered_at"] is None


@pytest.mark.parametrize("id", ["nothing", "0" * 26, "x" * 300, "%27%20OR%201=1", "ü", "%2e%2e"])
def test_a_duel_that_was_never_asked_is_404(shared, id):
    for kind, body in (("conversion", None), ("vote", {"winner": "first"})):
        assert is_refused(shared.put(f"/duels/{id}/{kind}", json=body), 404, "no duel|nothing here")


def test_an_id_with_a_nul_or_a_very_long_one_is_422(client):
    for id in ("a%00b", "x" * 2001):
        assert is_refused(client.put(f"/duels/{id}/conversion"), 422, "^id: it must have no NUL")


def test_answers_are_told_together_and_one_that_is_wrong_leaves_the_others(client):
    one, two, three = (duel["id"] for duel in ask(client, count=3).json()["duels"])
    told = client.post("/experiments/buttons/answers", json={"answers": [
        {"id": one}, {"id": "nothing"}, {"id": two, "winner": "second"}, {"id": one},
        {"id": three, "at": 1e12}, {"id": two},
    ]})  # fmt: skip
    assert told.status_code == 200
    found = told.json()["answers"]
    assert [each["id"] for each in found] == [one, "nothing", two, one, three, two]
    assert [each.get("status") for each in found] == ["counted", None, None, "repeated", None,
                                                      "counted"]  # fmt: skip
    for place, words in ((1, "no duel 'nothing'"), (2, "feedback='votes'"), (4, "in the future")):
        assert words in found[place]["error"]
    assert client.post("/experiments/buttons/answers", json={"answers": []}).json() == {
        "answers": []
    }


def test_answers_are_of_the_experiment_of_the_address(client):
    client.post("/experiments", json={"name": "other", "arms": ["a", "b"]})
    duel = ask(client, "other").json()["id"]
    (found,) = client.post("/experiments/buttons/answers",
                           json={"answers": [{"id": duel}]}).json()["answers"]  # fmt: skip
    assert "no duel" in found["error"]
    assert client.put(f"/duels/{duel}/conversion").json()["status"] == "counted"


def test_too_many_answers_or_none_are_422_or_413(client):
    path = "/experiments/buttons/answers"
    assert is_refused(client.post(path, json={}), 422, "answers: field required")
    duel = ask(client).json()["id"]
    rows = [{"id": id} for id in ("", "a\0b", "x" * 300, "nobody", duel)]
    told = client.post(path, json={"answers": rows}).json()["answers"]
    assert [each.get("status", "refused") for each in told] == ["refused"] * 4 + ["counted"]
    many = {"answers": [{"id": "x"}] * 10_001}
    assert is_refused(client.post(path, json=many), 422, "answers: list should have at most 10000")
    assert is_refused(client.post(path, json={"answers": [{"id": "x" * 199}] * 10_000}), 413, "byt")
    assert is_refused(client.post("/experiments/no/answers", json={"answers": []}), 404, "no such")


# The log.


def test_the_log_is_read_in_pages(client, hours):
    asked = []
    for n in range(5):
        asked.append(ask(client, unit=f"visitor {n}").json())
        hours.pass_by(1.0)
    client.put(f"/duels/{asked[1]['id']}/conversion")
    rows, after = [], 0
    while after is not None:
        page = client.get(f"/experiments/buttons/log?after={after}&limit=2").json()
        assert len(page["duels"]) <= 2
        rows, after = rows + page["duels"], page["next"]
    columns = ("number", "id", "first", "second", "unit")
    assert [tuple(row[column] for column in columns) for row in rows] == [
        (n + 1, duel["id"], duel["first"], duel["second"], f"visitor {n}")
        for n, duel in enumerate(asked)
    ]
    assert [row["first_won"] for row in rows] == [None, 1.0, None, None, None]
    assert rows[1]["answered_at"] - rows[1]["asked_at"] == 4.0
    page = client.get("/experiments/buttons/log").json()
    assert (page["duels"], page["next"]) == (rows, None)
    assert page["experiment"]["arms"] == ["red", "green"]
    assert client.get("/experiments/buttons/log?limit=5").json()["experiment"] is None
    assert client.get(f"/experiments/buttons/log?after={2**53}").json()["duels"] == []
    for query in ("after=-1", "limit=0", "limit=10001", "after=x", f"after={2**53 + 1}", "limit="):
        assert is_refused(client.get(f"/experiments/buttons/log?{query}"), 422, query.split("=")[0])
    assert is_refused(client.get("/experiments/nothing/log"), 404, "no such experiment")


# Webhooks.


def test_webhooks_are_made_listed_and_removed_and_the_secret_is_shown_once(client):
    path = "/experiments/buttons/webhooks"
    made = client.post(path, json={"url": "https://example.org/hook"})
    assert made.status_code == 201 and len(made.json()["secret"]) == 64
    (listed,) = client.get(path).json()["webhooks"]
    assert listed == {"id": made.json()["id"], "url": "https://example.org/hook", "trouble": None}
    assert client.delete(f"{path}/{listed['id']}").status_code == 204
    assert is_refused(client.delete(f"{path}/{listed['id']}"), 404, "no webhook")
    assert is_refused(client.delete(f"{path}/a%00"), 422, "NUL")
    for url in ("ftp://example.org", "example.org", "", "http://x\0", 3, "http://" + "x" * 2000):
        assert is_refused(client.post(path, json={"url": url}), 422, "^url")
    for url in ("ftp://example.org", "example.org", "http://", "https:///x", "http://[x"):
        refused = client.post(path, json={"url": url})
        assert is_refused(refused, 422, "^url: must be an address such as https://[^^]*$"), url
    for method, path in (("GET", ""), ("POST", ""), ("DELETE", "/x")):
        answer = client.request(method, f"/experiments/no/webhooks{path}",
                                json={"url": "http://x"} if method == "POST" else None)  # fmt: skip
        assert is_refused(answer, 404, "no such experiment")


# Limits, methods, shapes.


def test_a_body_of_ten_megabytes_is_413_whether_or_not_it_says_its_length(client):
    large = b'{"unit": "' + b"u" * 10_000_000 + b'"}'
    headers = {"Content-Type": "application/json"}
    for content in (large, iter([large[:600_000], large[600_000:]])):
        asked = client.post("/experiments/buttons/duels", content=content, headers=headers)
        assert is_refused(asked, 413, "at most 1,000,000 bytes")
    assert ask(client).status_code == 200


@pytest.mark.parametrize(("method", "path"), [
    ("PUT", "/experiments"), ("DELETE", "/experiments"), ("PUT", "/experiments/buttons"),
    ("GET", "/experiments/buttons/duels"), ("POST", "/duels/x/conversion"),
    ("GET", "/duels/x/vote"),
    ("POST", "/experiments/buttons/log"), ("GET", "/experiments/buttons/answers"),
    ("POST", "/metrics"), ("POST", "/healthz"), ("PUT", "/experiments/buttons/webhooks"),
])  # fmt: skip
def test_another_method_is_405(shared, method, path):
    response = shared.request(method, path)
    assert is_refused(response, 405, "does not take this method")
    assert response.headers["allow"]


@pytest.mark.parametrize("path", ["/no", "/experiments/a/b", "/experiments/a%2Fb", "/duels"])
def test_what_is_not_there_is_404_in_the_same_shape(shared, path):
    assert is_refused(shared.get(path), 404, "there is nothing here")


def test_a_body_that_is_not_json_is_422(client):
    posted = client.post("/experiments", content=b"name=x", headers={"Content-Type": "text/plain"})
    assert is_refused(posted, 422, "the body")
    assert is_refused(client.post("/experiments"), 422, "the body: field required")


def test_a_fault_is_500_says_where_to_look_and_shows_nothing(client, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("/secret/place")

    monkeypatch.setattr(Experiment, "standing", fail)
    with caplog.at_level(logging.ERROR, "duelay.service"):
        response = client.get("/experiments/buttons", headers={"X-Request-ID": "mine-1"})
    assert is_refused(response, 500, "the log has it, under mine-1")
    assert "secret" not in response.text and response.headers["x-request-id"] == "mine-1"
    assert "/secret/place" in caplog.text


@pytest.mark.parametrize("kind", [ValueError, LookupError, TypeError, ArithmeticError])
def test_an_error_that_is_not_of_the_library_is_a_fault_wherever_it_happens(
    client, monkeypatch, caplog, kind
):
    def fail(*_, **__):
        raise kind("/secret/place")

    duel = ask(client).json()
    for where, method, path, body in (
        ("duelay.live.writes.tell._outcome", "PUT", f"/duels/{duel['id']}/conversion", {}),
        ("duelay.live.writes.tell._outcome", "POST", "/experiments/buttons/answers",
         {"answers": [{"id": duel["id"]}]}),
        ("duelay.live.changes.check_arms", "PATCH", "/experiments/buttons", {"add_arms": ["c"]}),
        ("duelay.live.writes.writer.assign_duels", "POST", "/experiments/buttons/duels", {}),
        ("duelay.live.catalog.find_policy", "POST", "/experiments",
         {"name": "c", "arms": ["a", "b"]}),
    ):  # fmt: skip
        caplog.clear()
        with monkeypatch.context() as patch, caplog.at_level(logging.ERROR, "duelay.service"):
            patch.setattr(where, fail)
            answered = client.request(method, path, json=body, headers={"X-Request-ID": "mine"})
        assert is_refused(answered, 500, "under mine"), path
        (record,) = caplog.records
        assert record.exc_info and record.fields["request"] == "mine" and "/secret" in caplog.text
    assert client.put(f"/duels/{duel['id']}/conversion").json()["status"] == "counted"


def test_a_store_that_is_away_is_503_and_is_not_named(serve, tmp_path, caplog):
    from sqlalchemy import event
    from sqlalchemy.exc import OperationalError

    client = serve(f"sqlite:///{tmp_path}/duels.db", patience=0.1)
    client.post("/experiments", json={"name": "buttons", "arms": ["red", "green"]})
    duel, is_gone = ask(client).json(), True

    @event.listens_for(store_of(client).engine, "begin")
    def fail(connection):
        if is_gone:
            raise OperationalError("SELECT", {}, Exception(f"{tmp_path}: gone"))

    calls = [("GET", "/healthz"), ("GET", "/experiments"), ("GET", "/experiments/buttons"),
             ("POST", "/experiments/buttons/duels"), ("PUT", f"/duels/{duel['id']}/conversion"),
             ("DELETE", "/experiments/buttons"), ("GET", "/experiments/buttons/log")]  # fmt: skip
    for method, path in calls:
        caplog.clear()
        response = client.request(method, path, headers={"X-Request-ID": "mine"})
        assert is_refused(response, 503, "^the store does not answer")
        (record,) = (
            each for each in caplog.records  # the background worker may complain, too
            if each.levelno >= logging.WARNING
            and getattr(each, "fields", {}).get("request") == "mine"
        )  # fmt: skip
        assert "gone" in record.getMessage(), path
        assert response.headers["retry-after"] == "1" and str(tmp_path) not in response.text
    assert client.get("/metrics").status_code == 200
    is_gone = False
    assert client.put(f"/duels/{duel['id']}/conversion").json()["status"] == "counted"
    assert client.get("/healthz").json() == {"status": "ok"}


def test_no_error_names_the_store(client, tmp_path):
    for method, path, body in [
        ("POST", "/experiments", GOOD | {"name": "buttons"}), ("GET", "/experiments/x", None),
        ("POST", "/experiments/x/duels", None), ("PUT", "/duels/x/conversion", None),
        ("DELETE", "/experiments/x", None), ("PATCH", "/experiments/x", {}),
        ("GET", "/experiments/x/log", None), ("POST", "/experiments", GOOD | {"policy": "x"}),
    ]:  # fmt: skip
        response = client.request(method, path, json=body)
        assert response.status_code >= 400
        assert str(tmp_path) not in response.text and "duels.db" not in response.text
        assert "'buttons'" not in response.text or body  # nor other experiments


def test_an_experiment_that_another_server_deleted_and_made_again_is_found_again(
    serve, client, tmp_path, hours
):
    other = serve(f"sqlite:///{tmp_path}/duels.db", clock=hours)
    old = ask(other).json()
    client.delete("/experiments/buttons")
    client.post("/experiments", json={"name": "secret", "arms": ["x", "y"]})
    assert is_refused(ask(other), 404, "no such experiment")  # and not a duel of `secret`
    assert is_refused(other.get("/experiments/buttons/log"), 404, "no such experiment")
    client.post("/experiments", json={"name": "buttons", "arms": ["a", "b", "c"]})
    assert set(ask(other).json().values()) & {"a", "b", "c"}
    assert is_refused(other.put(f"/duels/{old['id']}/conversion"), 404, "no duel")
    assert verify(store_of(client)) == ()


def test_valid_answers_count_after_another_server_deleted_and_made_an_experiment_again(
    serve, client, tmp_path, hours
):
    """A client takes 404 for final: the answer would be lost."""
    other = serve(f"sqlite:///{tmp_path}/duels.db", clock=hours)
    old = ask(other).json()
    client.delete("/experiments/buttons")
    hours.pass_by(1.0)
    client.post("/experiments", json={"name": "buttons", "arms": ["a", "b", "c"]})
    first, second = ask(client).json(), ask(client).json()
    told = other.put(f"/duels/{first['id']}/conversion")
    assert (told.status_code, told.json()["status"]) == (200, "counted")
    client.delete("/experiments/buttons")
    hours.pass_by(1.0)
    client.post("/experiments", json={"name": "buttons", "arms": ["a", "b", "c"]})
    third = ask(client).json()
    answers = {"answers": [{"id": each["id"]} for each in (third, second)]}
    found = other.post("/experiments/buttons/answers", json=answers).json()["answers"]
    assert [each.get("status") for each in found] == ["counted", None]
    assert is_refused(other.put(f"/duels/{old['id']}/conversion"), 404, "no duel")
    client.delete("/experiments/buttons")
    assert is_refused(other.put(f"/duels/{third['id']}/conversion"), 404, "")
    assert is_refused(ask(other), 404, "no such experiment")


# Health, numbers, logs.


def test_it_is_not_well_before_kernels_are_compiled(monkeypatch, serve, tmp_path):
    goes_on = threading.Event()
    monkeypatch.setattr(app_of, "warm_up", goes_on.wait)
    client = serve(f"sqlite:///{tmp_path}/duels.db")
    response = client.get("/healthz")
    assert is_refused(response, 503, "kernels are being compiled")
    assert response.headers["retry-after"] == "1"
    goes_on.set()
    while client.get("/healthz").status_code != 200:
        pass


def test_it_is_not_well_where_kernels_cannot_be_compiled(monkeypatch, serve, tmp_path, caplog):
    def fail():
        raise RuntimeError("no compiler")

    monkeypatch.setattr(app_of, "warm_up", fail)
    client = serve(f"sqlite:///{tmp_path}/duels.db")
    while "being compiled" in (found := client.get("/healthz")).text:
        pass
    assert is_refused(found, 503, "could not be compiled: the log says why")
    assert "no compiler" in caplog.text


def test_warming_up_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    app_of.warm_up()
    assert list(tmp_path.iterdir()) == []


def test_it_is_not_well_without_the_file_of_the_store(client, tmp_path):
    assert client.get("/healthz").json() == {"status": "ok"}
    (tmp_path / "duels.db").rename(tmp_path / "elsewhere.db")
    assert is_refused(client.get("/healthz"), 503, "the store does not answer")


def test_numbers_for_prometheus_count_asks_tells_times_and_groups(client):
    duels = ask(client, count=3).json()["duels"]
    for duel in (duels[0], duels[0], duels[1]):
        client.put(f"/duels/{duel['id']}/conversion")
    client.get("/nothing")
    client.get("/experiments/buttons")
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = dict(line.rsplit(" ", 1) for line in response.text.splitlines() if line[0] != "#")
    for name, value in {
        'duelay_asks_total{experiment="buttons"}': 3, 'duelay_tells_total{status="counted"}': 2,
        'duelay_tells_total{status="repeated"}': 1, "duelay_commit_group_size_count": 4,
        "duelay_commit_group_size_sum": 6, 'duelay_pending{experiment="buttons"}': 1,
        'duelay_request_seconds_count{route="/duels/{id}/conversion",status="200"}': 3,
        'duelay_request_seconds_count{route="none",status="404"}': 1,
    }.items():  # fmt: skip
        assert float(found[name]) == value, name
    assert 0.0 <= float(found['duelay_evidence_age_seconds{experiment="buttons"}'])
    for duel in duels:
        assert duel["id"] not in response.text


def test_a_request_has_an_id_its_own_or_the_callers(client):
    ids = {client.get("/healthz").headers["x-request-id"] for _ in range(2)}
    assert len(ids) == 2 and all(re.fullmatch("[0-9a-f]{16}", id) for id in ids)
    for given in ("abc-123", "a.b:c/d+e="):
        assert client.get("/", headers={"X-Request-ID": given}).headers["x-request-id"] == given
    for given in ("a b", "x" * 101, '"', "{}"):
        assert client.get("/", headers={"X-Request-ID": given}).headers["x-request-id"] != given


def test_each_request_is_a_line_of_json_in_the_log_without_its_secrets(serve, tmp_path, caplog):
    url = f"sqlite:///{tmp_path}/duels.db"
    key = service.keys.create_key(url, "k", keys_of.SCOPES)
    client = serve(url)
    with caplog.at_level(logging.INFO, "duelay.service"):
        client.get("/experiments?x=1", headers={"Authorization": f"Bearer {key}",
                                                "X-Request-ID": "mine"})  # fmt: skip
    (record,) = [each for each in caplog.records if each.name == "duelay.service"]
    line = middleware.JsonLineFormatter().format(record)
    found = json.loads(line)
    assert "\n" not in line and key not in line
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found["at"])
    assert found["milliseconds"] > 0.0
    assert {name: found[name] for name in ("level", "message", "request", "method", "path",
                                           "status")} == {
        "level": "info", "message": "request", "request": "mine", "method": "GET",
        "path": "/experiments", "status": 200,
    }  # fmt: skip


def test_the_description_has_every_route_and_its_docs(client):
    found = client.get("/openapi.json").json()
    assert len(found["paths"]) == 14
    for each in found["paths"].values():
        for operation in each.values():
            assert operation["description"]
    docs = client.get("/docs")
    assert (
        docs.status_code == 200 and "script-src 'self'" in docs.headers["content-security-policy"]
    )
    for path in client.get("/openapi.json").json()["paths"]:
        assert f" {path}</code>" in docs.text
    assert "Idempotency-Key" in docs.text and "//" not in docs.text.replace("://localhost", "")


def test_a_change_that_cannot_be_changes_nothing(client):
    before = client.get("/experiments/buttons").json()
    for change, words in (
        ({"status": "paused", "add_arms": ["new"], "retire_arms": ["nobody"]}, "no arm 'nobody'"),
        ({"status": "paused", "retire_arms": before["arms"]}, "two arms must stay"),
    ):
        assert is_refused(client.patch("/experiments/buttons", json=change), 422, words)
    after = client.get("/experiments/buttons").json()
    assert (after["arms"], after["status"]) == (before["arms"], "running")


@pytest.mark.parametrize("change, words", [
    ({"add_arms": ["blue", "tie"]}, "tie"),
    ({"add_arms": ["blue", "x\0"]}, "NUL"),
    ({"add_arms": ["blue", " "]}, "name"),
    ({"add_arms": ["blue"], "retire_arms": ["red", "green"]}, "two arms must stay"),
    ({"add_arms": ["blue"], "retire_arms": ["pink"]}, "pink"),
    ({"add_arms": [f"arm {n}" for n in range(999)]}, "1,000"),
])  # fmt: skip
def test_a_refused_change_leaves_status_arms_and_winner_as_they_were(client, hours, change, words):
    client.post(
        "/experiments", json={"name": "poll", "arms": ["red", "green"], "feedback": "votes"}
    )
    while not (duel := ask(client, "poll").json())["settled"]:
        hours.pass_by(5)
        client.put(f"/duels/{duel['id']}/vote", json={"winner": "red"})
    before = client.get("/experiments/poll").json()
    sent = client.patch("/experiments/poll", json={"status": "paused", **change})
    assert is_refused(sent, 422, words)
    after = client.get("/experiments/poll").json()
    for name in ("winner", "status", "arms", "present", "duels"):
        assert after[name] == before[name], name
    assert after["winner"] == "red" and after["status"] == "running"


def test_the_metrics_count_duels_and_what_is_pending_as_the_standing_does(client, hours):
    duels = [ask(client).json() for _ in range(12)]
    for duel in duels[:5]:
        client.put(f"/duels/{duel['id']}/conversion")
    hours.pass_by(600)
    ask(client)
    pending = sum(map(sum, client.get("/experiments/buttons").json()["pending"]))
    shown = client.get("/metrics").text
    assert pending == 8 and 'duelay_pending{experiment="buttons"} 8.0' in shown
    assert 'duelay_asks_total{experiment="buttons"} 13.0' in shown
