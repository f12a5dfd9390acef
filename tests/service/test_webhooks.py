"""Webhooks: who is told of what, signed, again until it is taken, and in order."""

import collections
import threading
import time
from contextlib import ExitStack, closing

import pytest
from sqlalchemy import select, update

from duelay.live import Experiment, Store
from duelay.live.events import note, read_events
from duelay.live.storage import schema
from duelay.live.storage.schema import MICRO
from duelay.service import background_worker, webhooks
from duelay.service.background_worker import BackgroundWorker
from live.hours import Hours, settle
from service.served import wait_until
from service.webhook_receiver import Receiver, is_signed

ARMS = ["red", "green", "blue"]


@pytest.fixture
def receiver():
    with Receiver() as found:
        yield found


@pytest.fixture
def opened(store):
    """A store, of SQLite and of PostgreSQL."""
    with closing(Store(store)) as found:
        found.migrate()
        yield found


@pytest.fixture
def local(url):
    """A store of SQLite, where the database makes no difference."""
    with closing(Store(url)) as found:
        yield found


@pytest.fixture
def world():
    """The time of the world, by which watchers send: it stands."""
    return Hours(1_800_000_000.0)


@pytest.fixture
def watch(world):
    """Makes watchers that do a round when told so, and not before."""
    made = []

    def make(store, **said):
        made.append(
            BackgroundWorker(store, now=world, passed=world, webhooks_to="loopback", **said)
        )
        return made[-1]

    yield make
    for each in made:
        each.stop()


def one_round(watcher):
    if watcher.takes_lease():
        watcher.settle()
        watcher.deliver()
        watcher.wait()
        watcher.notice()
        watcher.deliver()
        watcher.wait()


def hook(experiment, receiver, path=""):
    return webhooks.add_hook(experiment, receiver.url + path, now=lambda: 0.0)


def happen(experiment, *about):
    """Let something have happened."""
    with experiment.store.writing() as connection:
        for each in about:
            note(connection, experiment._writer.id, "alarm", each, f"about {each}", 5 * MICRO)


def hooks_of(store):
    with store.reading() as connection:
        return connection.execute(select(schema.webhooks)).all()


def vote_for(experiment, arm, n):
    """Let an arm win every duel that it is in."""
    answers = []
    for _ in range(n):
        duel = experiment.ask()
        if duel.id is not None:
            answers.append((duel, arm if arm in (duel.first, duel.second) else "tie"))
    experiment.tell_all(answers)


def test_a_winner_that_is_declared_and_withdrawn_is_told_in_order_and_signed(
    opened, receiver, watch, world
):
    experiment = Experiment.create(
        opened, "buttons", ARMS, feedback="votes", clock=world, policy="decide:wait=1m"
    )
    made, watcher = hook(experiment, receiver), watch(opened, clock=world)
    one_round(watcher)
    assert receiver.received == []
    while experiment.standing().winner is None:
        vote_for(experiment, "red", 20)
        world.pass_by(60)
        settle(experiment)
    one_round(watcher)
    experiment.add_arm("pink")
    one_round(watcher)
    one_round(watcher)
    told = [("declared", "red"), ("joined", "pink"), ("withdrawn", "red")]
    assert receiver.told == told
    for headers, body in receiver.received:
        signature, now = headers["Duelay-Signature"], world.now
        assert headers["Content-Type"] == "application/json"
        assert is_signed(made["secret"], signature, body, now)
        assert not is_signed(made["secret"], signature, body + b" ", now)
        assert not is_signed("0" * 64, signature, body, now)
        assert not is_signed(made["secret"], signature, body, now + 400)
        moved = signature.replace("t=", "t=1")
        assert not is_signed(made["secret"], moved, body, now + 10**10, 10**12)
    first, _, second = receiver.bodies
    assert set(first) == {"id", "event", "experiment", "about", "words", "at"}
    assert first["experiment"] == "buttons" and first["id"] < second["id"]
    assert first["words"].startswith("red wins: declared after") and first["at"] <= second["at"]
    experiment.close()


def test_an_alarm_is_told_once(local, receiver, watch, world):
    """Wins of one arm are told at once and those of the other late, which no guarantee allows."""
    experiment = Experiment.create(
        local, "buttons", ["red", "green"], feedback="votes", share=1.0, clock=world
    )
    for _ in range(4):
        duels = [experiment.ask() for _ in range(50)]
        winners = [("red", "green")[n % 2] for n in range(50)]
        for arm in ("red", "green"):
            world.pass_by(600.0)
            experiment.tell_all([(duel, winner) for duel, winner in zip(duels, winners, strict=True)
                                 if winner == arm])  # fmt: skip
    names = [alarm.name for alarm in experiment.standing().alarms]
    assert "delay by winner" in names
    hook(experiment, receiver)
    experiment.ask()  # or its traffic would be silent, too
    watcher = watch(local, clock=world)
    one_round(watcher)
    one_round(watch(local, clock=world))
    watcher._looked.clear()
    one_round(watcher)
    assert sorted(receiver.told) == sorted(("alarm", name) for name in names)


def test_alarms_are_looked_for_after_answers_alone_and_in_a_namesake(local, receiver, watch, world):
    """Neither needs more duels than the last look has seen of that name; each waits a minute."""

    watcher, looked = watch(local), []
    watcher._notice_alarms = lambda head: looked.append((head["asked"], head["heard"]))
    experiment = Experiment.create(local, "buttons", ARMS)
    hook(experiment, receiver)
    duels = [experiment.ask() for _ in range(3)]
    watcher.notice()
    world.pass_by(60.0)
    watcher.notice()  # nothing is new
    experiment.tell(duels[0])
    watcher.notice()
    experiment.tell(duels[1])
    watcher.notice()  # a look was just taken
    assert looked == [(3, 0), (3, 1)]
    world.pass_by(59.0)
    watcher.notice()
    world.pass_by(1.0)
    watcher.notice()
    experiment.delete()
    namesake = Experiment.create(local, "buttons", ARMS)
    hook(namesake, receiver)
    duels = [namesake.ask() for _ in range(3)]
    namesake.tell_all(duels[:2])  # as much as of the one before
    watcher.notice()
    assert looked == [(3, 0), (3, 1), (3, 2), (3, 2)]


def test_traffic_that_falls_silent_is_told_once_and_again_after_more_traffic(
    local, receiver, watch, world
):
    hours = Hours(world.now - 5000.0)
    experiment = Experiment.create(local, "buttons", ARMS, clock=hours)
    hook(experiment, receiver)

    def browser(n):
        for _ in range(n):
            experiment.ask()
            hours.pass_by(10.0)

    watcher = watch(local)
    watcher._notice_alarms = lambda head: None  # that is by the clock of the watcher
    browser(99)
    one_round(watcher)
    assert receiver.told == []  # too few to say what is usual
    browser(1)
    one_round(watcher)
    one_round(watcher)
    ((kind, _),) = receiver.told
    assert kind == "silent"
    assert "no duel has been asked for" in receiver.bodies[0]["words"]
    assert "usually there is one every 10" in receiver.bodies[0]["words"]
    browser(5)
    one_round(watcher)
    assert len(receiver.told) == 2
    hours.now = world.now
    browser(1)
    one_round(watcher)
    assert len(receiver.told) == 2  # it is not silent now


def test_a_paused_experiment_is_not_silent(local, receiver, watch, world):
    hours = Hours(world.now - 5000.0)
    experiment = Experiment.create(local, "buttons", ARMS, clock=hours)
    hook(experiment, receiver)
    for _ in range(100):
        experiment.ask()
    experiment.pause()
    one_round(watch(local))
    assert receiver.told == [("paused", "")]


@pytest.mark.parametrize("clock", ["1000x", "0.001x"])
def test_silence_is_by_the_clock_of_the_experiment(local, receiver, watch, world, clock):
    speed = float(clock.removesuffix("x"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("duelay.live.clock.wall", world)
        patch.setattr("duelay.live.clock._passed", world)
        experiment = Experiment.create(local, "buttons", ARMS, clock=clock)
        hook(experiment, receiver)
        watcher = watch(local)
        for _ in range(100):
            experiment.ask()
            world.pass_by(10.0 / speed)
        one_round(watcher)
        assert receiver.told == []
        world.pass_by(700.0 / speed)
        one_round(watcher)
        ((kind, _),) = receiver.told
        assert kind == "silent"
        body = receiver.bodies[0]
        assert "for 11m" in body["words"]
        assert body["at"] == pytest.approx(experiment.now(), abs=1e-3)


@pytest.mark.parametrize("how", ["paused", "finished", "declared"])
def test_an_experiment_that_goes_on_has_not_been_silent_meanwhile(
    local, receiver, watch, world, how
):
    experiment = Experiment.create(local, "buttons", ARMS, feedback="votes", clock=world)
    hook(experiment, receiver)
    watcher = watch(local)
    watcher._notice_alarms = lambda head: None
    for _ in range(120):
        experiment.ask()
        world.pass_by(10.0)
    if how == "declared":
        with local.writing() as connection:
            connection.execute(update(schema.experiments).values(winner=0, declared=120))
            connection.execute(update(schema.experiments).values(verdict=1))
    else:
        {"paused": experiment.pause, "finished": experiment.finish}[how]()
    world.pass_by(86_400.0)
    if how == "declared":
        experiment.add_arm("yellow")
    else:
        experiment.resume()
    one_round(watcher)
    assert "silent" not in dict(receiver.told)
    world.pass_by(700.0)
    one_round(watcher)
    assert "silent" in dict(receiver.told)


def test_a_clock_that_jumps_is_no_silence(local, receiver, monkeypatch):
    wall, passed = Hours(1_800_000_000.0), Hours(0.0)
    for place in ("clock", "storage.store"):
        monkeypatch.setattr(f"duelay.live.{place}.wall", wall)
    monkeypatch.setattr("duelay.live.clock._passed", passed)

    def pass_by(seconds):
        wall.pass_by(seconds)
        passed.pass_by(seconds)

    experiment = Experiment.create(local, "buttons", ARMS)
    hook(experiment, receiver)
    watcher = BackgroundWorker(local, webhooks_to="loopback", passed=passed)
    with ExitStack() as stack:
        stack.callback(watcher.stop)
        for _ in range(120):
            experiment.ask()
            pass_by(10.0)
        wall.pass_by(86_400.0)
        with pytest.warns(UserWarning, match="jumped ahead"):
            one_round(watcher)
        assert receiver.told == []
        wall.pass_by(-2 * 86_400.0)
        pass_by(700.0)
        with pytest.warns(UserWarning, match="jumped back"):
            one_round(watcher)
        assert [kind for kind, _ in receiver.told] == ["silent"]


def test_an_alarm_waits_for_an_event_that_is_being_written(postgresql, migrated, watch):
    """An event with a smaller id that is committed later would never be told."""

    def waits():
        return postgresql.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")[0][0]

    with postgresql.database(migrated) as url, ExitStack() as stack:
        other, experiment = Store(url), Experiment.create(url, "buttons", ARMS)
        stack.callback(other.close)
        stack.callback(experiment.close)
        with other.reading() as connection:
            head = connection.execute(select(schema.experiments)).mappings().one()
        alarm = threading.Thread(target=watch(other)._note, args=(head, "alarm", "order", "off"))
        with experiment.writing() as connection:
            alarm.start()
            wait_until(lambda: not alarm.is_alive() or waits())
            note(connection, experiment.id, "declared", "red", "red wins", 5)
        alarm.join()
        with other.reading() as connection:
            kinds = [event["kind"] for event in read_events(connection, experiment.id)]
        assert kinds == ["declared", "alarm"]


@pytest.mark.parametrize("answer", [500, 404, 302, None])
def test_an_event_is_told_until_it_is_taken_and_later_ones_wait(
    local, receiver, watch, world, answer
):
    experiment, watcher = Experiment.create(local, "buttons", ARMS), watch(local)
    hook(experiment, receiver)
    happen(experiment, "one", "two")
    receiver.answers = [answer, answer]
    for tries in (1, 2):
        one_round(watcher)
        world.pass_by(2.0**tries - 0.1)
        one_round(watcher)  # it is not due yet
        assert [about for _, about in receiver.told] == ["one"] * tries
        (row,) = hooks_of(local)
        assert row.tries == tries and row.sent == 0
        assert (f"it answered {answer}" if answer else "Error") in row.trouble
        assert row.due / MICRO - world.now == pytest.approx(0.1, abs=1e-5)
        world.pass_by(0.1)
    one_round(watcher)
    assert [about for _, about in receiver.told] == ["one", "one", "one", "two"]
    (row,) = hooks_of(local)
    assert (row.tries, row.trouble) == (0, None)
    one_round(watcher)
    assert len(receiver.told) == 4
    ids = [body["id"] for body in receiver.bodies]
    assert ids[0] == ids[1] == ids[2] < ids[3]  # by its id a receiver knows what it has had


def test_back_off_begins_anew_after_a_success_and_ends_at_an_hour(local, receiver, watch, world):
    experiment, watcher = Experiment.create(local, "buttons", ARMS), watch(local)
    hook(experiment, receiver)
    happen(experiment, "one", "two")
    with local.writing() as connection:
        connection.execute(update(schema.webhooks).values(tries=30))
    receiver.answers = [500]
    one_round(watcher)
    (row,) = hooks_of(local)
    assert row.due / MICRO == world.now + 3600.0
    world.pass_by(3600.0)
    receiver.answers = [204, 500]
    one_round(watcher)
    (row,) = hooks_of(local)
    assert row.tries == 1 and row.due / MICRO == world.now + 2.0


def test_nobody_there_is_tried_again_and_others_are_told_meanwhile(local, receiver, watch):
    experiment, watcher = Experiment.create(local, "buttons", ARMS), watch(local)
    webhooks.add_hook(experiment, "http://127.0.0.1:9/nobody", now=lambda: 0.0)
    webhooks.add_hook(experiment, "http://[not an address", now=lambda: 0.0)
    hook(experiment, receiver)
    happen(experiment, "one")
    one_round(watcher)
    assert [about for _, about in receiver.told] == ["one"]
    assert sorted(row.tries for row in hooks_of(local)) == [0, 1, 1]


def test_an_address_is_told_of_its_experiment_and_of_what_comes_after_it_alone(
    local, receiver, watch
):
    one, two = (Experiment.create(local, name, ARMS) for name in ("one", "two"))
    happen(one, "before")
    hook(one, receiver)
    happen(two, "of another")
    happen(one, "after")
    one_round(watch(local))
    assert [about for _, about in receiver.told] == ["after"]


def test_a_server_that_dies_after_sending_sends_again(local, receiver, watch, monkeypatch):
    """At least once: nothing is noted as sent that was not taken."""
    experiment, watcher = Experiment.create(local, "buttons", ARMS), watch(local)
    hook(experiment, receiver)
    happen(experiment, "one")

    class KilledError(BaseException):
        pass

    def die(*_):
        raise KilledError

    assert watcher.takes_lease()
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(background_worker, "update", die)
        one_round(watcher)
    assert len(receiver.told) == 1
    one_round(watcher)
    assert [about for _, about in receiver.told] == ["one", "one"]


def test_only_one_of_two_watchers_sends_and_the_other_takes_over(opened, receiver, watch, world):
    experiment = Experiment.create(opened, "buttons", ARMS)
    hook(experiment, receiver)
    one, two = watch(opened), watch(opened)
    assert [one.takes_lease(), two.takes_lease(), one.takes_lease()] == [True, False, True]
    happen(experiment, "one")
    one_round(two)
    assert receiver.told == []
    one_round(one)
    assert len(receiver.told) == 1
    world.pass_by(16.0)  # one of them is gone
    assert [two.takes_lease(), one.takes_lease()] == [True, False]
    experiment.close()


@pytest.mark.long
def test_two_servers_tell_each_event_once(url, serve, receiver, monkeypatch):
    monkeypatch.setitem(BackgroundWorker.__init__.__kwdefaults__, "every", 0.1)
    monkeypatch.setattr(background_worker, "_LEASE", 1e6)  # whoever has it is alive
    takes_lease, rounds = BackgroundWorker.takes_lease, collections.Counter()

    def counted(self):
        rounds[self._me] += 1
        return takes_lease(self)

    monkeypatch.setattr(BackgroundWorker, "takes_lease", counted)
    clients = [serve(url), serve(url)]
    clients[0].post("/experiments", json={"name": "v", "arms": ["old", "new"], "feedback": "votes"})
    made = clients[0].post("/experiments/v/webhooks", json={"url": receiver.url}).json()
    for client in (*clients, *clients):
        duels = client.post("/experiments/v/duels", json={"count": 20}).json()["duels"]
        answers = [{"id": duel["id"], "winner": "new"} for duel in duels if duel["id"]]
        client.post("/experiments/v/answers", json={"answers": answers})
        client.get("/experiments/v")
    wait_until(lambda: receiver.received)
    clients[1].patch("/experiments/v", json={"add_arms": ["newest"]})
    wait_until(lambda: ("withdrawn", "new") in receiver.told)
    before = rounds.copy()  # two more rounds of either: one may be under way
    wait_until(lambda: all(rounds[me] - before[me] > 5 for me in rounds))
    assert len(rounds) == 2
    told = [each for each in receiver.told if each[0] != "alarm"]  # nobody seeds the duels
    assert told == [("declared", "new"), ("joined", "newest"), ("withdrawn", "new")]
    assert len(set(receiver.told)) == len(receiver.told)
    headers, body = receiver.received[0]
    assert is_signed(made["secret"], headers["Duelay-Signature"], body, time.time(), 86_400)
    assert clients[1].get("/experiments/v/webhooks").json()["webhooks"][0]["trouble"] is None


@pytest.mark.parametrize("ahead", [86_400.0, 60.0])
def test_events_are_sent_at_once_when_a_clock_that_was_ahead_is_set_right(
    local, receiver, watch, world, ahead
):
    experiment = Experiment.create(local, "buttons", ARMS)
    hook(experiment, receiver)
    experiment.pause()
    receiver.answers = [500]
    world.now += ahead
    one_round(watch(local))
    world.now -= ahead
    one_round(watch(local))
    assert [each["event"] for each in receiver.bodies] == ["paused", "paused"]


def test_the_id_of_a_deleted_event_is_not_used_again(local):
    """Receivers drop what they have seen, by its id."""

    def newest():
        with Experiment.create(local, "x", ["a", "b"]) as experiment:
            experiment.pause()
            with experiment.store.reading() as connection:
                (event,) = read_events(connection, experiment.id)
            experiment.delete()
        return event["id"]

    assert newest() < newest()
