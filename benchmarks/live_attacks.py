"""Attacks on live experiments: ``python -m benchmarks attacks live``.

Each setting has experiments of its own, in stores of SQLite, and every statement of a verdict that
is false counts. Two clients with connections of their own ask and tell. In the settings of
`SERVERS` they are two servers, each a process that listens on loopback.

Visitors come in groups. Time is that of a clock that the groups move, so that an experiment of some
days takes seconds, and its result does not depend on the speed of the machine.
"""

from __future__ import annotations

import contextlib
import functools
import json
import multiprocessing
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
from tqdm import tqdm

import pages
from decide import ERROR
from duelay import delays
from duelay.live import Experiment
from duelay.live.writes.requests import Ask
from duelay.service import make_app
from duelay.simulation.result import _is_false
from live_store import _BEGIN, MEMORY, Clock, Own

HOUR, DAY = 3600.0, 86_400.0
LAW = delays.parse("never:0.25,(exponential:2h)")
SLOW = delays.parse("never:0.25,(exponential:1d)")
EVEN = np.full((2, 2), 0.5)
GAP = np.array([[0.5, 0.4], [0.6, 0.5]])
MARGIN = 0.1
RATES = (0.3, 0.3)  # of both arms, where one is shown at a time
GROUP, GROUPS = 20, 5  # visitors in two hours, and groups in a day
EVERY = 4  # groups between two acts of the operator


class Found(NamedTuple):
    """How an experiment ended."""

    verdict: str
    is_false: bool
    duels: int


class Setting(NamedTuple):
    """What is done to an experiment."""

    matrix: Any = EVEN
    n: int = 600  # duels, at the most
    attack: str = ""  # "nightly", "outage" or "operator"
    held: bool = False  # whether booking is held in an outage
    dated: bool = False  # whether what has waited is told with its times
    said: Any = {}  # arguments of `create`


SETTINGS = {
    "told every night, sorted by winner, line by line": Setting(attack="nightly"),
    "told after an outage, sorted by winner, with booking held": Setting(
        attack="outage", held=True
    ),
    "told after an outage, sorted by winner, with event times and a `lag`": Setting(
        attack="outage", dated=True, said={"lag": "2d"}
    ),
    "told after an outage, sorted by winner, without these (not allowed)": Setting(attack="outage"),
    "four equal arms, retired and added by an operator": Setting(
        np.full((4, 4), 0.5), attack="operator"
    ),
    "a gap of exactly the margin, good enough": Setting(
        GAP, 2000, said={"margin": MARGIN, "end": "good_enough"}
    ),
    "a gap of exactly the margin, equivalent": Setting(GAP, 2000, said={"margin": MARGIN}),
}
SERVERS = {
    f"two servers, {shown}, {end.replace('_', ' ')}": {
        "display": display, "margin": MARGIN, "end": end,
    }
    for display, shown in (("pair", "pairs"), ("one", "one arm at a time"))
    for end in ("good_enough", "equivalent")
}  # fmt: skip
RUNS, RUNS_OF_SERVERS = 200, 75


def judge(experiment: Experiment, matrix: Any) -> Found:
    """Return how an experiment stands; a verdict is one on the arms that are present."""
    standing = experiment.standing()
    verdict, duels = standing.verdict, int(standing.plays.sum())
    if verdict in ("running", "undecided"):
        return Found(verdict, False, duels)
    assert standing.evidence is not None
    there = np.flatnonzero(standing.present)
    best, mu = int(np.flatnonzero(there == standing.leader)[0]), matrix[np.ix_(there, there)]
    if verdict == "winner":
        is_false = bool((np.delete(mu[best], best) <= 0.5).any())
    else:
        beaten = standing.evidence.beats[standing.leader][there]
        is_false = _is_false(verdict, mu, best, beaten, MARGIN)
    return Found(verdict, is_false, duels)


class Trial:
    """An experiment with two clients, and the answers that nobody has told yet."""

    def __init__(self, store: str, name: str, setting: Setting, seed: int) -> None:
        self.clock, self.setting = Own(), setting
        self.matrix = setting.matrix
        arms = [f"arm {number}" for number in range(len(self.matrix))]
        said = {"error": ERROR, "clock": self.clock, **setting.said}
        first = Experiment.create(store, name, arms, **said)
        self.clients = (first, Experiment.open(store, name, clock=self.clock))
        self.numbers = {arm: number for number, arm in enumerate(arms)}
        self.rng = np.random.default_rng((34, seed))
        self.waiting: list[tuple[int, float, str]] = []  # the arm that won, when, and the duel
        self.has_ended = False

    @property
    def client(self) -> Experiment:
        """One of the two clients."""
        return self.clients[self.rng.integers(2)]

    def ask(self) -> None:
        """Let a group of visitors come, within two hours."""
        self.clock.pass_by(2.0 * HOUR)
        asks = [Ask(None, None) for _ in range(GROUP)]
        self.client.submit_all(asks)
        for duel in (ask.outcome() for ask in asks):
            if duel.id is None:
                self.has_ended = True
                return
            i, j = self.numbers[duel.first], self.numbers[duel.second]
            delay = float(LAW.sample(1, seed=self.rng)[0])
            if self.rng.random() < self.matrix[i, j] and delay < np.inf:
                self.waiting.append((i, self.clock() + delay, duel.id))

    def due(self) -> list[tuple[int, float, str]]:
        """Return the answers that have come, sorted by winner, and forget them."""
        now = self.clock()
        found = sorted(answer for answer in self.waiting if answer[1] <= now)
        self.waiting = [answer for answer in self.waiting if answer[1] > now]
        return found

    def tell(self, *, lines: bool, dated: bool = False, pause: float = 0.0) -> None:
        """Tell what has come: all at once, or line by line with a pause between two arms."""
        answers = self.due()
        if not lines:
            self.client.tell_all([id for _, _, id in answers])
            return
        for place, (arm, at, id) in enumerate(answers):
            is_next = place > 0 and answers[place - 1][0] != arm
            self.clock.pass_by(pause if is_next else 1.1)  # there is a look each second
            self.client.tell(id, at=at if dated else None)

    def operate(self) -> None:
        """Retire all that stand in the way of the luckiest arm, and add others."""
        standing = self.client.standing()
        assert standing.evidence is not None
        among = np.where(np.outer(standing.present, standing.present),
                         standing.evidence.log_evidence, -np.inf)  # fmt: skip
        np.fill_diagonal(among, -np.inf)
        best, rival = np.unravel_index(among.argmax(), among.shape)
        for arm in np.flatnonzero(standing.present):
            if arm not in (best, rival) and among[best, arm] <= 0.5 * among[best, rival]:
                self.client.retire_arm(standing.arms[arm])
        for _ in range(4 - int(self.client.standing().present.sum())):
            number = len(self.numbers)
            self.numbers[f"arm {number}"] = number
            self.client.add_arm(f"arm {number}")
        self.matrix = np.full((len(self.numbers),) * 2, 0.5)

    def play(self) -> Found:
        """Play it to the end; return the first verdict, or the one at the end."""
        attack, step = self.setting.attack, 0
        for step in range(self.setting.n // GROUP):
            is_night = step % GROUPS == GROUPS - 1
            is_out = attack == "outage" and step // GROUPS % 2 == 1
            if is_out and step % GROUPS == 0 and self.setting.held:
                self.client.hold_booking()
            self.ask()
            if self.has_ended:
                break
            if attack == "nightly":
                if is_night:
                    self.tell(lines=True, pause=60.0)
            elif not is_out:
                self.tell(lines=False)
            elif is_night:  # what has waited, one arm's answers half a day after the other's
                self.tell(lines=True, dated=self.setting.dated, pause=DAY / 2)
                if self.setting.held:
                    self.client.release_booking()
            if attack == "operator" and step % EVERY == EVERY - 1:
                found = judge(self.client, self.matrix)
                if found.verdict != "running":
                    return found
                self.operate()
        return judge(self.client, self.matrix)


def attacked(store: str, setting: Setting, seed: int) -> Found:
    """Play one experiment, and remove it from its store."""
    trial = Trial(store, f"{seed}", setting, seed)
    found = trial.play()
    trial.clients[0].delete()
    for client in trial.clients:
        client.close()
    return found


def folder_in_memory() -> str | None:
    """Return a folder in memory, if the system has one: a disk is not what is measured."""
    return MEMORY if Path(MEMORY).is_dir() else None


def _serve(store: str, port: int, value: Any) -> None:
    import uvicorn

    app = make_app(store, clock=Clock(value))
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


@contextlib.contextmanager
def two_servers() -> Iterator[Callable[[str, Any, int], Found]]:
    """Start two servers of one store; give a function that plays an experiment through them."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(dir=folder_in_memory()) as folder:
        store, value = f"sqlite:///{folder}/x.db", context.Value("d", _BEGIN)
        Experiment.create(store, "first", 2, clock=Clock(value)).close()
        ports = [free_port() for _ in range(2)]
        servers = [context.Process(target=_serve, args=(store, port, value), daemon=True)
                   for port in ports]  # fmt: skip
        for server in servers:
            server.start()
        clients = [httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=600.0)
                   for port in ports]  # fmt: skip
        try:
            for server, client in zip(servers, clients, strict=True):
                wait_for(server, client)
            yield functools.partial(served, store, Clock(value), clients)
        finally:
            for client in clients:
                client.close()
            for server in servers:
                server.terminate()
                server.join()


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_for(server: Any, client: httpx.Client) -> None:
    """Wait until a server answers."""
    while True:
        if not server.is_alive():
            raise SystemExit("a server has ended; its message is above")
        with contextlib.suppress(httpx.TransportError):
            if client.get("/healthz").status_code == 200:
                return
        time.sleep(0.1)


def served(
    store: str, clock: Clock, clients: list[httpx.Client], name: str, said: Any, seed: int
) -> Found:
    """Play an experiment of two equal arms through two servers, in turns by a coin."""
    rng, path = np.random.default_rng((35, seed)), f"/experiments/{name}"
    rates = RATES if said["display"] == "one" else (0.5, 0.5)
    body = {"name": name, "arms": ["red", "green"], "error": ERROR, **said}
    clients[rng.integers(2)].post("/experiments", json=body).raise_for_status()
    waiting: list[tuple[float, str]] = []
    for _ in range(600):  # groups of 25, every four hours
        now = clock.pass_by(4 * HOUR)
        due = [{"id": id} for at, id in waiting if at <= now]
        waiting = [each for each in waiting if each[0] > now]
        if due:
            told = clients[rng.integers(2)].post(f"{path}/answers", json={"answers": due})
            assert {each["status"] for each in told.raise_for_status().json()["answers"]} <= {
                "counted", "late",
            }  # fmt: skip
        asked = clients[rng.integers(2)].post(f"{path}/duels", json={"count": 25})
        duels = asked.raise_for_status().json()["duels"]
        if duels[0]["id"] is None:
            break
        delay = SLOW.sample(len(duels), seed=rng)
        for duel, age in zip(duels, delay.tolist(), strict=True):
            if rng.random() < rates[duel["first"] == "green"] and age < np.inf:
                waiting.append((now + age, duel["id"]))
    with Experiment.open(store, name, clock=clock) as experiment:
        found = judge(experiment, EVEN)
        experiment.delete()
    return found


class Known:
    """The experiments that are measured, in a file."""

    def __init__(self, path: Path) -> None:
        self._path, self.found = path, {}
        if path.exists():
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            self.found = {tuple(name): Found(*row) for name, row in rows}

    def add(self, name: str, seed: int, play: Callable[[int], Found]) -> None:
        """Play an experiment unless it is known."""
        if (name, seed) not in self.found:
            found = self.found[name, seed] = play(seed)
            with self._path.open("a") as file:
                file.write(json.dumps([[name, seed], found]) + "\n")

    def row(self, name: str) -> list[str]:
        """Return a row of the table."""
        those = [found for (each, _), found in self.found.items() if each == name]
        n = len(those)
        if n == 0:
            return [name, "0", "-", "-", "-", "-"]
        ends = [found for found in those if found.verdict not in ("running", "undecided")]
        false = sum(found.is_false for found in those)
        most = 100 * (ERROR + 3 * (ERROR * (1 - ERROR) / n) ** 0.5)
        duels = np.mean([found.duels for found in those])
        return [name, str(n), f"{duels:,.0f}", f"{100 * len(ends) / n:.0f} %",
                f"{100 * false / n:.1f} %", f"{most:.1f} %"]  # fmt: skip


def table(part: int, path: Path) -> pages.Part:
    """Make the table of all settings, with one `part`-th of the experiments."""
    known = Known(path)
    with tempfile.TemporaryDirectory(dir=folder_in_memory()) as folder:
        store = f"sqlite:///{folder}/x.db"
        for seed in tqdm(range(RUNS // part), leave=False, disable=None):
            for name, setting in SETTINGS.items():
                known.add(name, seed, functools.partial(attacked, store, setting))
    n = RUNS_OF_SERVERS // part
    if any((name, seed) not in known.found for name in SERVERS for seed in range(n)):
        with two_servers() as play_served:
            for seed in tqdm(range(n), leave=False, disable=None):
                for place, (name, said) in enumerate(SERVERS.items()):
                    known.add(name, seed, functools.partial(play_served, f"{place}-{seed}", said))
    rows = [known.row(name) for name in (*SETTINGS, *SERVERS)]
    print(pages.render([pages.table([""] * 6, rows)]), flush=True)
    columns = ["live experiments", "number", "duels, mean", "with a verdict", "a false one",
               "5 % and three standard errors"]  # fmt: skip
    return pages.table(columns, rows)
