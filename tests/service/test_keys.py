"""Keys: who may do what, with which experiment."""

import sqlite3
from contextlib import closing

import pytest

from duelay.live import Experiment, Store
from duelay.service import keys as keys_of
from duelay.service.keys import SCOPES, create_key, list_keys, revoke_key


class Caller:
    """A client that presents a key."""

    def __init__(self, client, key):
        self.client, self.headers = (
            client,
            {} if key is None else {"Authorization": f"Bearer {key}"},
        )

    def __call__(self, method, path, body=None):
        response = self.client.request(method, path, json=body, headers=self.headers)
        if response.status_code >= 400:
            assert list(response.json()) == ["error"]
        return response


@pytest.fixture
def made(url):
    """A store with two experiments, and one duel of each."""
    with closing(Store(url)) as store:
        duels = {
            name: Experiment.create(store, name, ["a", "b"]).ask().id for name in ("one", "two")
        }
    return url, duels


@pytest.fixture
def call(made, serve):
    """Makes a key, and returns what calls with it."""
    started = []

    def make(scopes, experiments=None):
        key = create_key(made[0], "k", scopes, experiments)
        started[:] = started or [serve(made[0])]
        started[0].app.state.context.keys._read_at = -1e9  # or it would be known in two seconds
        return Caller(started[0], key)

    return make


def calls(duel, name):
    """Every address that needs a key: the scope that it needs, and the call."""
    at = f"/experiments/{name}"
    return [
        (None, "GET", at, None),
        ("ask", "POST", f"{at}/duels", {}),
        ("ask", "POST", f"{at}/duels", {"count": 2}),
        ("tell", "PUT", f"/duels/{duel}/conversion", {}),
        ("tell", "PUT", f"/duels/{duel}/vote", {"winner": "first"}),
        ("tell", "POST", f"{at}/answers", {"answers": [{"id": duel}]}),
        ("administer", "GET", f"{at}/log", None),
        ("administer", "GET", f"{at}/webhooks", None),
        ("administer", "POST", f"{at}/webhooks", {"url": "http://127.0.0.1:9"}),
        ("administer", "PATCH", at, {"status": "running"}),
        ("administer", "DELETE", f"{at}/webhooks/x", None),
        ("administer", "DELETE", at, None),
    ]


@pytest.mark.parametrize("scope", SCOPES)
def test_a_key_may_do_what_its_scope_says_and_nothing_else(made, call, scope):
    caller = call([scope])
    for needed, *words in calls(made[1]["one"], "one"):
        status = caller(*words).status_code
        if needed in (None, scope):
            assert status in (200, 201, 204) or (status == 404 and words[1].endswith("/x")), words
        else:
            assert status == 403, words
    creates = caller("POST", "/experiments", {"name": "three", "arms": ["a", "b"]})
    assert creates.status_code == (201 if scope == "administer" else 403)


@pytest.mark.parametrize("scope", SCOPES)
def test_a_key_of_one_experiment_is_for_that_alone(made, call, scope):
    caller = call([scope], ["one"])
    for _, *words in calls(made[1]["two"], "two"):
        response = caller(*words)
        # Whether a duel is there is no business of who may not know of the experiment.
        assert response.status_code == (404 if words[1].startswith("/duels") else 403), words
    for _, *words in calls("x", "nothing"):
        assert caller(*words).status_code == (404 if words[1].startswith("/duels") else 403), words
    listed = caller("GET", "/experiments").json()["experiments"]
    assert [each["name"] for each in listed] == ["one"]
    creates = caller("POST", "/experiments", {"name": "three", "arms": ["a", "b"]})
    assert creates.status_code == 403
    with closing(Store(made[0])) as store:
        assert Experiment.names(store) == ("one", "two")
        standing = Experiment.open(store, "two").standing()
        assert (standing.tick, int(standing.conversions.sum())) == (1, 0)


def test_a_duel_of_another_experiment_is_as_unknown_as_one_that_never_was(made, call):
    caller = call(["tell"], ["one"])
    there = caller("PUT", f"/duels/{made[1]['two']}/conversion")
    never = caller("PUT", f"/duels/{'0' * 26}/conversion")
    assert there.status_code == never.status_code == 404
    assert there.text.replace(made[1]["two"], "") == never.text.replace("0" * 26, "")


def test_answers_cannot_name_duels_of_another_experiment(made, call):
    caller = call(["tell"], ["one"])
    told = caller("POST", "/experiments/one/answers", {"answers": [{"id": made[1]["two"]}]})
    assert "no duel" in told.json()["answers"][0]["error"]


def test_a_key_of_a_name_may_make_that_experiment(made, call):
    caller = call(["administer"], ["three"])
    made = caller("POST", "/experiments", {"name": "three", "arms": ["a", "b"]})
    assert made.status_code == 201


@pytest.mark.parametrize("spoil", [
    lambda key: None,
    lambda key: "",
    lambda key: key[:-1],
    lambda key: key + "0",
    lambda key: key[:-1] + ("0" if key[-1] != "0" else "1"),
    lambda key: key.upper(),
    lambda key: "duelay_" + "0" * 16 + "_" + "0" * 64,
    lambda key: key[:23] + "_" + "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    lambda key: "x" * 5000,
    lambda key: key.split("_")[2],
])  # fmt: skip
def test_a_wrong_key_is_401_whatever_is_asked(made, call, spoil):
    right = call(SCOPES)
    key = right.headers["Authorization"].removeprefix("Bearer ")
    caller = Caller(right.client, spoil(key))
    for _, *words in [*calls(made[1]["one"], "one"), (0, "GET", "/experiments", None),
                      (0, "POST", "/experiments", {"name": "x", "arms": ["a", "b"]})]:  # fmt: skip
        response = caller(*words)
        assert response.status_code == 401 and response.headers["www-authenticate"] == "Bearer"
        assert key not in response.text
    for header in (f"Basic {key}", key, f"bearer{key}"):
        response = right.client.get("/experiments", headers={"Authorization": header})
        assert response.status_code == 401
    for header in (f"bearer {key}", f"BEARER  {key} "):
        response = right.client.get("/experiments", headers={"Authorization": header})
        assert response.status_code == 200


def test_a_revoked_key_is_good_for_nothing_after_two_seconds(made, call, monkeypatch):
    caller, other = call(SCOPES), call(["ask"])
    assert caller("GET", "/experiments").status_code == 200
    revoke_key(made[0], caller.headers["Authorization"].removeprefix("Bearer "))
    assert keys_of._FRESH == 2.0
    monkeypatch.setattr(keys_of, "_FRESH", 0.0)
    assert caller("GET", "/experiments").status_code == 401
    assert other("GET", "/experiments").status_code == 200
    (mine, its) = list_keys(made[0])
    assert (mine.is_revoked, its.is_revoked) == (True, False)
    with pytest.raises(ValueError, match="no key .* that is not revoked"):
        revoke_key(made[0], mine.id)
    revoke_key(made[0], its.id)  # by its id
    assert other("GET", "/experiments").status_code == 401
    assert caller.client.get("/experiments").status_code == 401  # and nobody is let in without one


def test_the_first_key_ends_that_everybody_is_let_in(made, serve, monkeypatch):
    monkeypatch.setattr(keys_of, "_FRESH", 0.0)
    client = serve(made[0])
    assert client.get("/experiments").status_code == 200
    create_key(made[0], "first")
    assert client.get("/experiments").status_code == 401


def test_where_a_key_is_needed_in_any_case_nobody_is_let_in_without(made, serve):
    client = serve(made[0], needs_key=True)
    assert client.get("/experiments").status_code == 401
    for path in ("/healthz", "/metrics", "/docs", "/openapi.json"):
        assert client.get(path).status_code == 200


def test_the_store_has_no_secret_of_a_key(made):
    key = create_key(made[0], "k")
    _, id, secret = key.split("_")
    with closing(sqlite3.connect(made[0].removeprefix("sqlite:///"))) as connection:
        dump = "\n".join(connection.iterdump())
    assert id in dump and secret not in dump
    assert secret not in repr(list_keys(made[0]))


def test_secrets_are_compared_in_constant_time(made, call, monkeypatch):
    compared = []
    compare = keys_of.hmac.compare_digest

    def spy(*words):
        compared.append(words)
        return compare(*words)

    caller = call(SCOPES)
    monkeypatch.setattr(keys_of.hmac, "compare_digest", spy)
    caller("GET", "/experiments")
    Caller(caller.client, "wrong")("GET", "/experiments")
    assert len(compared) == 2 and compared[0][0] == compared[0][1]


@pytest.mark.parametrize(("said", "words"), [
    ({"name": ""}, "name must be a text"), ({"name": "n" * 201}, "name must be a text"),
    ({"scopes": []}, "scopes must name at least one"), ({"scopes": ["rule"]}, "scope"),
])  # fmt: skip
def test_a_key_that_is_not_right_is_not_made(url, said, words):
    with pytest.raises(ValueError, match=words):
        create_key(url, **({"name": "k"} | said))
    assert list_keys(url) == ()
