"""The list of experiments: by name and status, some at a time, each shown or its fault said."""

import logging
import re
import sys
import threading

import pytest
from sqlalchemy import delete, select, update

from duelay.live import Experiment, Store, StoreError
from duelay.live.storage import schema
from duelay.page import build
from duelay.service import keys, server
from page.counting import counted
from service.browser_client import Browser

N = 60


@pytest.fixture
def many(url, hours, serve):
    """A client of a store with many experiments: some are paused, some declared."""
    for n in range(N):
        experiment = Experiment.create(url, f"Test {n:02}", ["a", "b"], clock=hours)
    with experiment.writing() as connection:
        for values, last in (({"status": "paused"}, "5"), ({"winner": 1, "verdict": 1}, "7")):
            is_so = schema.experiments.c.name.endswith(last)
            connection.execute(update(schema.experiments).where(is_so).values(values))
    return serve(url, clock=hours)


def names(client, **asked):
    answered = client.get("/experiments", params=asked)
    assert answered.status_code == 200 and list(answered.json()) == ["experiments"]
    return [each["name"] for each in answered.json()["experiments"]]


def rows(text):
    """The names in a page of the list."""
    return re.findall(r'<span class="title"><bdi class="name">([^<]*)</bdi>', text)


def test_programs_list_experiments_by_name_and_status_and_some_at_a_time(many):
    every = [f"Test {n:02}" for n in range(N)]
    assert names(many) == every
    assert names(many, limit=7) == every[:7] and names(many, limit=7, offset=56) == every[56:]
    assert names(many, search="tEST 1") == every[10:20]
    assert names(many, status="paused") == every[5::10]
    assert names(many, status="declared") == every[7::10]
    assert len(names(many, status="running")) == N - 12
    assert names(many, search="t 2", status="declared", limit=9) == ["Test 27"]
    found = many.get("/experiments", params={"search": "Test 27"}).json()["experiments"][0]
    assert (found["winner"], found["arms"]) == ("b", ["a", "b"])
    for wrong in ({"status": "over"}, {"limit": 0}, {"offset": -1}, {"search": "x" * 1000}):
        assert many.get("/experiments", params=wrong).status_code == 422


def test_an_experiment_whose_rows_are_damaged_hides_no_other(many, url):
    table = schema.experiments
    with Store(url).writing() as connection:
        broken = select(table.c.id).where(table.c.name == "Test 07")
        connection.execute(delete(schema.arms).where(schema.arms.c.experiment.in_(broken)))
        other = update(table).where(table.c.name == "Test 17")
        connection.execute(other.values(verdict=99, winner=7))
    assert names(many) == [f"Test {n:02}" for n in range(N)]
    found = many.get("/experiments", params={"search": "07"}).json()["experiments"][0]
    assert (found["arms"], found["winner"]) == ([], None)


def test_a_key_for_some_experiments_pages_through_those_alone(many, url):
    mine = [f"Test {n:02}" for n in range(0, N, 2)]
    head = {"Authorization": f"Bearer {keys.create_key(url, 'mine', ['ask'], mine)}"}
    many.app.state.context.keys.forget()
    found = many.get("/experiments", params={"limit": 10, "offset": 5}, headers=head).json()
    assert [each["name"] for each in found["experiments"]] == mine[5:15]


def test_the_page_shows_some_experiments_at_a_time_and_finds_the_others(many):
    browser, found = Browser(many), []
    address = "/"
    while address:
        text = browser.get(address).text
        found += rows(text)
        assert len(rows(text)) <= 25 and "60 experiments" in text
        following = re.search(r'rel="next" href="([^"]*)"', text)
        address = following and following[1].replace("&amp;", "&")
    assert found == [f"Test {n:02}" for n in range(N)]
    text = browser.get("/?search=test+1&status=declared").text
    assert rows(text) == ["Test 17"] and 'value="test 1"' in text
    assert 'hx-get="/?search=test+1&amp;status=declared"' in text
    text = browser.get("/?search=%3Cb%3E").text
    assert rows(text) == [] and "<b>" not in text and "Show all" in text
    for odd in ("/?page=0", "/?page=x", "/?page=99999999999", "/?status=x", "/?search=%ED%A0%80"):
        assert browser.get(odd).status_code == 200, odd
    assert rows(browser.get("/?page=9").text) == []


def test_a_page_of_the_list_reads_what_it_shows(url, hours, serve):
    """Statements do not grow with the experiments, nor do the arms and evidence that are read."""
    costs = []
    for n in (30, 90):
        for k in range(n):
            Experiment.create(url, f"of {n}, number {k}", ["a", "b"], clock=hours)
        client = serve(url, clock=hours)
        statements = count_statements(client.app.state.context.store)
        assert len(rows(Browser(client).get("/").text)) == 25
        costs.append(len(statements))
    assert costs[1] <= costs[0]


def count_statements(store):
    """Return a list that grows with each statement, but for those of the server's own upkeep."""
    from sqlalchemy import event

    found = []

    def note(connection, cursor, words, *_):
        if threading.current_thread().name != "duelay-background":
            found.append(words)

    event.listen(store.engine, "before_cursor_execute", note)
    return found


def test_opening_one_experiment_reads_no_other(many, hours):
    store, costs = many.app.state.context.store, []
    for name in ("Test 00", "Test 59"):
        with counted(store) as cost:
            Experiment.open(store, name, clock=hours)
        costs.append(cost)
    assert costs[1].instructions <= costs[0].instructions + 50


# What cannot be shown.

POLICY = """
from dataclasses import dataclass
import duelay
from duelay.text import named
@named("policy", "of-our-own-{n}")
@dataclass(frozen=True, kw_only=True)
class Own(duelay.DoubleThompson):
    pass
"""


@pytest.fixture
def broken(client):
    """A client of a service with one good experiment and two that cannot be read."""
    store = client.app.state.context.store
    for name in ("own", "absurd"):
        Experiment.create(store, name, ["a", "b"])
    with Experiment.open(store, "buttons").writing() as connection:
        for name, values in (("own", {"policy": "of-our-own"}), ("absurd", {"error": 5e-324})):
            table = schema.experiments
            connection.execute(update(table).where(table.c.name == name).values(values))
    return client


def test_an_experiment_that_cannot_be_read_is_a_line_of_the_list_with_the_reason(broken, caplog):
    with caplog.at_level(logging.ERROR, "duelay.page"):
        for _ in range(2):
            broken.app.state.context.view_cache.forget("")
            listed = Browser(broken).get("/")
    assert listed.status_code == 200 and rows(listed.text) == ["buttons", "own", "absurd"]
    assert listed.text.count("It cannot be shown") == 2 and "of-our-own" in listed.text
    assert [record.args[0] for record in caplog.records] == ["own", "absurd"]  # once each
    assert len(broken.get("/experiments").json()["experiments"]) == 3


def test_an_experiment_whose_rows_are_missing_has_a_line_and_others_are_shown(
    url, tmp_path, hours, serve
):
    for name in ("whole", "damaged"):
        Experiment.create(url, name, ["a", "b"], clock=hours)
    client = serve(url, clock=hours)
    store, table = client.app.state.context.store, schema.experiments
    with store.writing() as connection:
        is_it = table.c.name == "damaged"
        connection.execute(update(table).where(is_it).values(asked=500, heard=200))
    listed = Browser(client).get("/")
    assert listed.status_code == 200 and rows(listed.text) == ["whole", "damaged"]
    assert listed.text.count("It cannot be shown: its rows in the store cannot be read") == 1
    client.app.state.context.view_cache.forget("")
    store.path.rename(tmp_path / "away.db")  # a store that is away is no fault of an experiment
    assert Browser(client).get("/").status_code == 503


def test_a_store_that_goes_away_while_it_is_listed_is_said(tmp_path, hours, monkeypatch):
    path = tmp_path / "duels.db"
    Experiment.create(path, "whole", ["a", "b"], clock=hours)
    store, real = Store(path), Experiment.open

    def go_away(*args, **said):
        path.rename(tmp_path / "away.db")
        return real(*args, **said)

    monkeypatch.setattr(Experiment, "open", go_away)
    with pytest.raises(StoreError, match="is gone"):
        build.build_list(store, clock=hours)


def test_what_is_asked_of_it_is_503_with_the_reason_and_others_go_on(broken):
    for method, path in (("GET", "/experiments/own"), ("POST", "/experiments/own/duels"),
                         ("PATCH", "/experiments/own")):  # fmt: skip
        answered = broken.request(method, path, json={})
        assert answered.status_code == 503 and "of-our-own" in answered.json()["error"]
    assert Browser(broken).get("/e/own").status_code == 503
    assert broken.post("/experiments/buttons/duels").status_code == 200


@pytest.mark.parametrize("error", [5e-324, 1e-300, 1e-13])
@pytest.mark.parametrize("how", ["error", "policy"])
def test_an_absurd_error_is_refused(client, error, how):
    said = {"error": error} if how == "error" else {"policy": f"decide:error={error}"}
    made = client.post("/experiments", json={"name": "x", "arms": ["a", "b"], **said})
    assert made.status_code == 422 and "error" in made.json()["error"]
    assert "x" not in Experiment.names(client.app.state.context.store)


def test_a_server_imports_the_modules_that_it_is_told_of(tmp_path, monkeypatch, url):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_policies.py").write_text(POLICY.format(n=1))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(server, "log_lines", lambda *_: None)  # both are of the whole process
    monkeypatch.setattr(sys, "setswitchinterval", lambda *_: None)
    served = []
    monkeypatch.setattr(server.uvicorn, "run", lambda *_, **__: served.append(server.application()))
    server.serve(url, modules=["own_policies"])
    (app,) = served
    made = Experiment.create(url, "x", ["a", "b"], policy="of-our-own-1:delay=learn")
    assert str(made.policy).startswith("of-our-own-1") and app.state.context.store is not None
    with pytest.raises(ValueError, match="there_is_none"):
        server.serve(url, modules=["there_is_none"])
