"""An A/B test over HTTP: two servers on a PostgreSQL, late conversions, a file, and refunds."""

import collections
import csv
import random

import httpx
import pytest
from sqlalchemy import text

from duelay.live import Experiment, Store, connect, verify
from service.served import LONG, Server, wait_until

pytestmark = pytest.mark.long
ARMS = ["green", "blue"]
REFUNDS = {"green": 0.1, "blue": 0.9}
N = 40


@pytest.fixture
def servers(postgresql, migrated, tmp_path):
    """Two servers of one store, and its address."""
    with postgresql.database(migrated) as url:
        one = Server(url, tmp_path)
        with Server(url, tmp_path) as other, one:
            brief = httpx.Limits(max_keepalive_connections=0)  # a server ends idle connections
            clients = [httpx.Client(base_url=each.url, timeout=LONG, limits=brief)
                       for each in (one, other)]  # fmt: skip
            yield url, clients
            for client in clients:
                client.close()


def rows(url, query):
    store = Store(url)
    try:
        with store.reading() as connection:
            return connection.execute(text(query)).all()
    finally:
        store.close()


def test_an_ab_test_on_two_servers_loses_nothing_and_doubles_nothing(servers, tmp_path):
    """Whatever became of a message, the rows say what the answers to it said."""
    url, clients = servers
    made = clients[0].post("/experiments", json={
        "name": "price", "arms": ARMS, "display": "one", "clock": "100000x", "share": 1.0,
        "window": "3650d", "guardrails": {"refund": {"bound": 0.05, "within": "2d"}},
    })  # fmt: skip
    assert made.status_code == 201, made.text
    rng, shown, said = random.Random(2), {}, collections.defaultdict(list)
    experiment = Experiment.open(url, "price")
    nightly = tmp_path / "conversions.csv"
    with nightly.open("w", newline="") as file:
        late = csv.writer(file)
        late.writerow(["id", "at"])
        for k in range(N):
            ask = {"json": {"unit": f"visitor-{k}"}, "headers": {"Idempotency-Key": f"request-{k}"}}
            # A load balancer tries again at the other server.
            both = [client.post("/experiments/price/duels", **ask).json() for client in clients]
            assert both[0] == both[1] and both[0]["arm"] == both[0]["first"]
            id, arm = both[0]["id"], both[0]["arm"]
            shown[id] = arm
            if rng.random() < REFUNDS[arm]:
                for client in rng.sample(clients, 2):
                    told = client.put(f"/duels/{id}/metrics/refund", json={})
                    said["refund", id].append(told.json()["status"])
            if k % 4 < 2:  # whichever arm is shown, so that there are as many in each run
                if k % 2:
                    late.writerow([id, experiment.now()])
                else:
                    for client in rng.sample(clients, 2):
                        told = client.put(f"/duels/{id}/conversion").json()["status"]
                        said["conversion", id].append(told)
    with nightly.open() as file:
        answers = [(row["id"], None, float(row["at"])) for row in csv.DictReader(file)]
    for client in clients:  # the file is told twice
        with connect(str(client.base_url)) as service:
            found = service.open("price").tell_all(answers)
        for (id, *_), status in zip(answers, found, strict=True):
            said["conversion", id].append(status)

    experiment.close()
    for statuses in said.values():
        assert statuses[0] in ("counted", "late") and statuses[1] == "repeated", statuses
    is_told = {id for (kind, id), got in said.items() if kind == "conversion"}
    duels = {row.id: row for row in rows(url, "SELECT * FROM duels")}
    assert duels.keys() == shown.keys() and len(answers) == N // 4
    assert {id for id, row in duels.items() if row.told is not None} == is_told
    events = rows(url, "SELECT d.id, e.late FROM metric_events e JOIN duels d USING (number)")
    assert sorted((id, is_late) for id, is_late in events) == sorted(
        (id, got[0] == "late") for (kind, id), got in said.items() if kind == "refund"
    )

    def refund():
        found = clients[1].get("/experiments/price").json()
        rail = found["guardrails"][0]["arms"]
        return found if sum(arm["duels"] for arm in rail) == N else None

    found = wait_until(refund)  # all are two days old
    n_of = collections.Counter(shown.values())
    converted = collections.Counter(shown[id] for id in is_told)
    assert found["rates"]["shown"] == [n_of[arm] for arm in ARMS]
    assert found["rates"]["conversions"] == [converted[arm] for arm in ARMS]
    refunds = collections.Counter(shown[id] for id, is_late in events if not is_late)
    assert [arm["events"] for arm in found["guardrails"][0]["arms"]] == [
        refunds[arm] for arm in ARMS
    ]
    assert verify(url) == ()
    for client in clients:
        page = client.get("/e/price")
        slide = client.get("/e/price/summary.svg")
        assert page.status_code == slide.status_code == 200
        assert f"{N} visitors" in slide.text and "duels" not in slide.text
        assert "Visitors and conversions" in page.text
