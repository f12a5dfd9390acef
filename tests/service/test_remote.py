"""Clients: a service has the face of the library, whoever is killed meanwhile."""

import asyncio
import contextlib
import dataclasses
import threading
import time

import httpx
import numpy as np
import pytest

from duelay import DuelayError, UnknownDuelError, estimate
from duelay.errors import AccessDeniedError, InvalidValueError
from duelay.live import (
    Experiment,
    PausedError,
    StoreError,
    UnknownExperimentError,
    connect,
    connect_async,
    verify,
)
from duelay.live.client import clients, protocol
from duelay.live.standing import StandingReport
from duelay.service.keys import create_key
from service.served import Server, wait_until

ARMS = ["red", "green", "blue"]


class Waited:
    """An asynchronous client whose calls are waited for, so that one script is for all."""

    def __init__(self, inner, run):
        self._inner, self._run = inner, run

    def __getattr__(self, name):
        found = getattr(self._inner, name)

        def call(*words, **more):
            result = self._run(found(*words, **more))
            return (
                Waited(result, self._run) if isinstance(result, clients.AsyncExperiment) else result
            )

        return call if callable(found) else found


class InProcess(httpx.BaseTransport):
    """Hands requests to an application in process."""

    def __init__(self, client):
        self._client = client

    def handle_request(self, request):
        found = self._client.request(request.method, str(request.url), content=request.read(),
                                     headers=request.headers)  # fmt: skip
        return httpx.Response(found.status_code, headers=found.headers, content=found.content)


class AsyncInProcess(httpx.AsyncBaseTransport):
    def __init__(self, client):
        self._inner = InProcess(client)

    async def handle_async_request(self, request):
        await request.aread()
        return self._inner.handle_request(request)


@pytest.fixture(params=["experiment", "sync", "async"])
def face(request, url, serve):
    """Makes and opens experiments: of the library, of a client, of an asynchronous client."""
    if request.param == "experiment":
        yield lambda verb, *words, **more: getattr(Experiment, verb)(url, *words, **more)
        return
    served = serve(url)
    if request.param == "sync":
        with connect("http://localhost", patience=0.0) as service:
            service._client._transport = InProcess(served)
            yield lambda verb, *words, **more: getattr(service, verb)(*words, **more)
        return
    with asyncio.Runner() as runner:
        service = connect_async("http://localhost", patience=0.0)
        service._client._transport = AsyncInProcess(served)
        waited = Waited(service, runner.run)
        yield lambda verb, *words, **more: getattr(waited, verb)(*words, **more)
        runner.run(service.close())


def test_one_script_says_the_same_of_all_three(face, url):
    """Asks, tells, arms, pauses, errors: what follows is what `Experiment` says."""
    experiment = face("create", "100 % / ü".replace("/", "-"), ARMS, feedback="votes", window="3d",
                      error=0.1)  # fmt: skip
    duels = [experiment.ask(unit=f"visitor {n}") for n in range(6)]
    assert experiment.ask(unit="visitor 5") == duels[5]
    assert experiment.ask(unit=7).id == experiment.ask(unit="7").id
    assert experiment.ask(key="k") == experiment.ask(key="k")
    assert experiment.ask().id != experiment.ask().id
    assert [experiment.tell(duels[0], "first"), experiment.tell(duels[0].id, "second")] == [
        "counted", "repeated",
    ]  # fmt: skip
    assert experiment.tell(duels[1], duels[1].second, time.time()) == "counted"
    answers = [(duels[2], "tie"), (duels[3].id, "first", time.time() - 1.0), (duels[2], "tie")]
    assert experiment.tell_all(answers) == ["counted", "counted", "repeated"]
    for raised, words, call in [
        (UnknownDuelError, "no duel 'x'", lambda: experiment.tell("x", "first")),
        (UnknownDuelError, "no duel 'x'", lambda: experiment.tell_all([("x", "first")])),
        (ValueError, "winner must be 'first'", lambda: experiment.tell(duels[4], "nobody")),
        (ValueError, "winner must be 'first'", lambda: experiment.tell(duels[4])),
        (ValueError, "winner must be 'first'", lambda: experiment.tell_all([(duels[4], "nobody")])),
        (ValueError, "at must not lie in", lambda: experiment.tell(duels[4], "tie", 1e12)),
        (ValueError, "duel must be one that was asked", lambda: experiment.tell(3, "tie")),
        (ValueError, "unit must be a text", lambda: experiment.ask(unit="  ")),
        (ValueError, "unit must have at most 200", lambda: experiment.ask(unit="u" * 201)),
        (ValueError, "key must be a text", lambda: experiment.ask(key=1.5)),
        (UnknownExperimentError, "no.* experiment", lambda: face("open", "nothing")),
        (ValueError, "experiment", lambda: face("create", "100 % - ü", ARMS)),
        (ValueError, "different names", lambda: face("create", "twice", ["a", "a"])),
        (ValueError, "two arms must stay|must be that of an arm|there is no arm",
         lambda: experiment.retire_arm("pink")),
    ]:  # fmt: skip
        with pytest.raises(raised, match=words):
            call()
    experiment.pause()
    with pytest.raises(PausedError, match="is paused"):
        experiment.ask()
    assert experiment.tell(duels[4], "first") == "counted"
    assert experiment.standing().status == "paused"
    experiment.pause(fallback="green")
    assert experiment.ask().winner == "green" == experiment.standing().choice
    experiment.resume()
    experiment.finish("blue")
    assert experiment.ask().winner == "blue" and experiment.standing().status == "finished"
    experiment.archive()
    experiment.reopen()
    assert experiment.standing().status == experiment.standing().verdict == "running"
    experiment.hold_booking()
    assert experiment.standing().booking == "held"
    experiment.release_booking()
    assert experiment.standing().booking == "running"
    experiment.add_arm("pink")
    experiment.retire_arm("red")
    standing = face("open", "100 % - ü").standing()
    assert standing.arms == (*ARMS, "pink") and list(standing.present) == [False, True, True, True]
    assert (standing.tick, int(standing.plays.sum())) == (10, 10)
    assert (standing.error, standing.feedback, str(standing.window)) == (0.1, "votes", "3d")
    assert verify(url) == ()
    experiment.delete()
    with pytest.raises(UnknownExperimentError):
        experiment.ask()
    assert Experiment.names(url) == ()


def test_guard_rails_are_declared_and_told_by_all_three(face, url):
    experiment = face("create", "x", ARMS, guardrails={"refund": 0.02, "share": None})
    experiment.add_guardrail("a call / ü".replace("/", "-"), bound=0.1, within="2h")
    duel = experiment.ask()
    told = {"metric": "refund", "arm": duel.second}
    assert [experiment.tell(duel, **told), experiment.tell(duel.id, **told)] == [
        "counted", "repeated",
    ]  # fmt: skip
    assert experiment.tell(duel, metric="a call - ü", arm="first", at=time.time()) == "counted"
    for wrong in ({"metric": "refund"}, {"metric": "refunds", "arm": "first"}, {"arm": "first"},
                  {"metric": "refund", "arm": "first", "winner": "first"}):  # fmt: skip
        with pytest.raises(InvalidValueError):
            experiment.tell(duel, **wrong)
    with pytest.raises(UnknownDuelError):
        experiment.tell("nobody", **told)
    with pytest.raises(InvalidValueError):
        experiment.add_guardrail("refund", bound=0.5)
    found = experiment.standing().guardrails
    assert found == Experiment.open(url, "x").standing().guardrails
    assert [(each.metric, each.bound, each.within) for each in found] == [
        ("refund", 0.02, "14d"), ("share", None, "14d"), ("a call - ü", 0.1, "2h"),
    ]  # fmt: skip


@pytest.fixture
def pair(url, serve, hours):
    """One experiment, by the library and by a client; time stands, for both."""
    served = serve(url, clock=hours)
    experiment = Experiment.create(url, "buttons", ARMS, clock=hours)
    with connect("http://localhost", patience=0.0) as service:
        service._client._transport = InProcess(served)
        yield experiment, service.open("buttons"), service
    experiment.close()


def play(experiment, hours, n=30):
    for k in range(n):
        hours.pass_by(7.5)
        duel = experiment.ask(unit=f"visitor {k % 20}" if k % 3 else None)
        if k % 2:
            experiment.tell(duel)


def test_standings_are_the_same(pair, hours):
    ours, theirs, _ = pair
    for n in (0, 30):
        play(ours, hours, n)
        mine, remote_ = ours.standing(), theirs.standing()
        for name in sorted(vars(remote_).keys() - {"report"}):
            found, wanted = getattr(remote_, name), getattr(mine, name)
            if name == "leader" and not mine.is_heard:
                assert found is None
            elif name == "window":
                assert found == str(wanted)
            elif isinstance(found, np.ndarray):
                np.testing.assert_array_equal(found, np.asarray(wanted), name)
                assert found.dtype == np.asarray(wanted).dtype
            else:
                assert found == wanted, name
        assert remote_.report == StandingReport.of(mine.with_alarms(()))
        assert str(remote_).splitlines()[0] == remote_.headline
        table = str(remote_).splitlines()[: len(ARMS) + 2]
        if mine.is_heard:
            assert table == str(mine).splitlines()[: len(table)]
        assert all(arm in str(remote_) for arm in ARMS)


@pytest.mark.parametrize("is_played", [True, False])
def test_histories_and_exports_are_the_same(pair, hours, tmp_path, is_played):
    ours, theirs, _ = pair
    if is_played:
        play(ours, hours)
    mine, found = ours.history(), theirs.history()
    for field in dataclasses.fields(mine):
        a, b = getattr(found, field.name), getattr(mine, field.name)
        if isinstance(b, np.ndarray):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-6, err_msg=field.name)
        else:
            assert a == b, field.name
    if is_played:
        for ending in ("csv", "parquet"):
            one = ours.export(tmp_path / f"ours.{ending}")
            two = theirs.export(tmp_path / f"theirs.{ending}")
            assert one.read_bytes() == two.read_bytes() or ending == "parquet"


def play_on_arms_that_come_and_go(experiment, hours):
    """Until a winner is declared; "new" loses and is retired, and "late" is there at the end."""
    play(experiment, hours, 10)
    experiment.add_arm("new")
    experiment.add_arm("late")
    play(experiment, hours, 10)
    experiment.retire_arm("new")
    best = experiment.arms[0]
    while experiment.standing().winner is None:
        for duel in [experiment.ask() for _ in range(20)]:
            if duel.first == best:
                hours.pass_by(1.0)
                experiment.tell(duel)
        hours.pass_by(86_400.0 * 20)
        experiment.settle()


@pytest.mark.parametrize("forgets", [False, True])
def test_an_export_has_changes_and_a_declaration_and_estimates_as_the_standing_says(
    url, serve, hours, tmp_path, forgets
):
    later = {"error": 0.3} | ({"forget_after": "30d"} if forgets else {})
    ours = Experiment.create(url, "buttons", ARMS, clock=hours, **later)
    play_on_arms_that_come_and_go(ours, hours)
    served = serve(url, clock=hours)
    with connect("http://localhost", patience=0.0) as service:
        service._client._transport = InProcess(served)
        theirs = service.open("buttons")
        mine, found = ours.history(), theirs.history()
        assert (found.changes, found.declared) == (mine.changes, mine.declared)
        assert found.declared.arm == ARMS[0] and found.n_earlier == mine.n_earlier
        assert [change.kind for change in found.changes] == ["joined", "joined", "retired"]
        exported = theirs.export(tmp_path / "theirs.csv")
        assert exported.read_bytes() == ours.export(tmp_path / "ours.csv").read_bytes()
    found = estimate(exported)
    assert found.winner == ours.standing().winner
    ours.close()


def test_the_log_is_read_to_its_end(pair, hours, monkeypatch):
    ours, theirs, _ = pair
    play(ours, hours)
    whole = theirs.log()
    monkeypatch.setattr(protocol.Calls, "_log", lambda self, after: protocol.Call(
        "GET", f"{self._path}/log?after={after}&limit=7"))  # fmt: skip
    assert theirs.log() == whole and len(whole) == ours.standing().tick > 20


def test_an_asynchronous_client_reads_the_same(url, pair, hours, serve, tmp_path):
    ours, theirs, _ = pair
    play(ours, hours)
    served = serve(url, clock=hours)

    async def read():
        async with connect_async("http://localhost", patience=0.0) as service:
            service._client._transport = AsyncInProcess(served)
            experiment = await service.open("buttons")
            written = await experiment.export(tmp_path / "async.csv")
            return await service.names(), await experiment.log(), written.read_bytes()

    names, log, written = asyncio.run(read())
    assert (names, log) == (("buttons",), theirs.log())
    assert written == theirs.export(tmp_path / "sync.csv").read_bytes()


def test_names_arms_and_status_are_those_of_the_service(pair):
    ours, theirs, service = pair
    assert service.names() == ("buttons",)
    assert (theirs.arms, theirs.status) == (ours.arms, ours.status)


# Trouble.


class Flaky(httpx.BaseTransport):
    """Loses some requests before they are sent, and some answers afterwards."""

    def __init__(self, client, *troubles):
        self._inner, self.troubles, self.sent = InProcess(client), list(troubles), []

    def handle_request(self, request):
        trouble = self.troubles.pop(0) if self.troubles else None
        if trouble == "lost":
            raise httpx.ConnectError("lost")
        if isinstance(trouble, int):
            return httpx.Response(trouble, json={"error": "later"})
        self.sent.append(request)
        found = self._inner.handle_request(request)
        if trouble == "unheard":
            raise httpx.ReadTimeout("unheard")
        return found


@pytest.fixture
def flaky(client, monkeypatch):
    """Makes a client to whom things happen; nobody waits."""
    monkeypatch.setattr(protocol, "_FIRST", 0.001)

    def make(*troubles, patience=1e6):
        service = stack.enter_context(connect("http://localhost", "key", patience=patience))
        service._client._transport = Flaky(client, *troubles)
        return clients.RemoteExperiment(service, "buttons"), service._client._transport

    with contextlib.ExitStack() as stack:
        yield make


@pytest.mark.parametrize("trouble", ["lost", "unheard", 502, 503, 504, 429])
def test_a_call_is_tried_again_and_nothing_counts_twice(flaky, client, trouble):
    experiment, transport = flaky(trouble, trouble)
    duel = experiment.ask()
    keys = {request.headers["idempotency-key"] for request in transport.sent}
    assert len(keys) == 1 and client.get("/experiments/buttons").json()["duels"] == 1
    transport.troubles = [trouble]
    assert experiment.tell(duel) == ("repeated" if trouble == "unheard" else "counted")
    found = client.get("/experiments/buttons").json()
    assert sum(map(sum, found["conversions"])) == 1
    assert {request.headers["authorization"] for request in transport.sent} == {"Bearer key"}


def test_two_asks_have_two_keys(flaky):
    experiment, transport = flaky()
    experiment.ask()
    experiment.ask()
    first, second = (request.headers["idempotency-key"] for request in transport.sent)
    assert first != second


def test_after_its_patience_it_says_that_the_service_does_not_answer(flaky, client):
    for troubles, words in ((["lost"] * 99, "ConnectError"), ([503] * 99, "answered 503")):
        experiment, _ = flaky(*troubles, patience=0.01)
        with pytest.raises(StoreError, match=f"does not answer.*{words}.*nothing counts twice"):
            experiment.ask()
    assert client.get("/experiments/buttons").json()["duels"] == 0


@pytest.mark.parametrize(("status", "raised"), [
    (401, AccessDeniedError), (403, PermissionError), (413, ValueError), (422, ValueError),
    (500, StoreError), (404, UnknownExperimentError), (409, PausedError),
])  # fmt: skip
def test_an_error_is_that_of_the_library_and_is_not_tried_again(flaky, status, raised):
    experiment, transport = flaky(status)
    with pytest.raises(raised, match="later") as found:
        experiment.ask()
    assert isinstance(found.value, DuelayError) and transport.sent == []


@pytest.mark.parametrize(("code", "raised"), [
    ("unknown_duel", UnknownDuelError), ("invalid", InvalidValueError), ("new", InvalidValueError),
])  # fmt: skip
def test_a_refused_answer_is_told_by_its_code_whatever_its_sentence(code, raised):
    refused = {"id": "x", "error": "said anew", "code": code}
    with connect("http://localhost") as service:
        service._client._transport = httpx.MockTransport(
            lambda request: httpx.Response(200, json={"answers": [refused]})
        )
        with pytest.raises(raised, match="said anew") as found:
            clients.RemoteExperiment(service, "buttons").tell_all(["x"])
        assert type(found.value) is raised


def test_an_answer_that_is_not_json_is_a_sentence(url, monkeypatch):
    with connect("http://localhost") as service:
        service._client._transport = httpx.MockTransport(
            lambda request: httpx.Response(500, text="<html>proxy</html>")
        )
        with pytest.raises(StoreError, match="the service answered 500"):
            service.open("buttons")


def test_an_address_or_a_patience_that_is_none_is_refused():
    for make in (connect, connect_async):
        with pytest.raises(ValueError, match="^url "):
            make("duels.db")
        with pytest.raises(ValueError, match="patience"):
            make("http://127.0.0.1:1", patience=-1)


def test_a_key_that_may_not_is_a_permission_error(url, serve):
    key = create_key(url, "k", ["tell"])
    served = serve(url)
    Experiment.create(url, "buttons", ARMS).close()
    for given in (key, None, "wrong"):
        with connect("http://localhost", given) as service:
            service._client._transport = InProcess(served)
            with pytest.raises(PermissionError, match="may not ask|send a key"):
                clients.RemoteExperiment(service, "buttons").ask()


# A real server.


@pytest.mark.long
def test_a_server_that_is_killed_and_started_again_is_found_again(url, tmp_path, monkeypatch):
    Experiment.create(url, "100% /?#ü".replace("/", ""), ARMS).close()
    with Server(url, tmp_path) as server, connect(server.url) as service:
        experiment = service.open("100% ?#ü")
        duel = experiment.ask()
        server.stop(9)
        told, pauses, pause = [], [], protocol.Tries.pause
        monkeypatch.setattr(
            protocol.Tries, "pause", lambda *words: pauses.append(1) or pause(*words)
        )
        thread = threading.Thread(target=lambda: told.append(experiment.tell(duel)))
        thread.start()
        wait_until(lambda: len(pauses) >= 2)  # it has called, and called again
        assert told == []
        with Server(url, tmp_path, port=server.port) as again:
            thread.join()
            assert told == ["counted"] and experiment.ask().id != duel.id
            asyncio.run(_ask_and_tell(again.url))
    assert verify(url) == ()


async def _ask_and_tell(url):
    """Eight at one time, over one client."""
    async with connect_async(url) as service:
        experiment = await service.open("100% ?#ü")
        duels = await asyncio.gather(*(experiment.ask() for _ in range(8)))
        told = await asyncio.gather(*(experiment.tell(duel) for duel in duels))
        assert len({duel.id for duel in duels}) == 8 and set(told) == {"counted"}
        assert (await experiment.standing()).tick == 10
