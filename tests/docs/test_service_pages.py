"""The pages on the service: their shell lines are run against a server, and their Python too."""

import asyncio
import doctest
import http.server
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import threading
import time
import types
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from duelay.live import Experiment, connect
from duelay.live.client.clients import Service
from duelay.service.keys import create_key
from servers import need
from service.served import LONG, free_port, is_well, wait_until

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(r"^```(console|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ID, KEY = r"\b[0-9a-f]{32}\b", r"duelay_[0-9a-f]{16}_[0-9a-f]{64}"
# What is another one each time: keys, ids of duels, keys and webhooks, secrets, times, and who the
# coin shows first. A long answer may be folded after a comma.
VARIES = {
    r",\s+": ",",
    KEY: "KEY",
    ID: "ID",
    r"\b([0-9a-f]{64}|[0-9a-f]{16})\b": "HEX",
    r"\b\d{10}\.\d+\b": "TIME",
    r"\b20\d\d-\d\d-\d\d[T ][\d:.]+Z?": "DATE",
    r"""(first|second)("?[:=] ?)["'](red|green|blue|yellow)["']""": r"\1\2ARM",
}
pytestmark = [pytest.mark.interpreted, pytest.mark.long]


def plain(text):
    for pattern, word in VARIES.items():
        text = re.sub(pattern, word, text)
    return text


class Checker(doctest.OutputChecker):
    """Takes what varies for the same; dots stand for anything."""

    def check_output(self, want, got, flags):
        flags |= doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        return super().check_output(plain(want), plain(got), flags)


def fence(page, words, title=""):
    """Return the block of a page that has some words in it."""
    source = (DOCS / "howto" / page).read_text()
    found = re.findall(r"^```python *(.*?)\n(.*?)^```$", source, re.DOTALL | re.MULTILINE)
    (block,) = [body for head, body in found if head == title and words in body]
    return block


def wait_until_healthy(port, server):
    def ended_or_healthy():
        return server.poll() is not None or is_well(f"http://127.0.0.1:{port}")

    wait_until(ended_or_healthy)
    assert server.poll() is None, "the server ended"


class Reader:
    """Somebody who types what a page says, from its top to its end, in a folder of their own."""

    def __init__(self, folder):
        self.folder, self.port = folder, str(free_port())
        self.server, self.key, self.id = None, None, None
        self.names = {}
        self.shell = subprocess.Popen(
            ["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, cwd=folder,
        )  # fmt: skip
        self.type(f'duelay() {{ {shlex.quote(sys.executable)} -m duelay "$@"; }}')

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def read(self, page):
        for kind, body in FENCE.findall(page.read_text()):
            body = body.replace("8000", self.port)
            if kind == "console":
                for command, answer in commands(body):
                    self.do(command, answer)
            elif ">>>" in body:
                self.run(body)

    def do(self, command, answer):
        """Run a line of the shell, and compare what it prints."""
        if command.startswith("duelay serve"):
            got = self.serve(command)
        elif re.match(r"(ID|export DUELAY_KEY)=", command) and "$" not in command:  # copied
            copied = self.id if command.startswith("ID") else self.key
            got = self.type(f"{command.partition('=')[0]}={copied}")
        else:
            got = self.type(command)
        self.id = (re.findall(ID, got) or [self.id])[-1]
        self.key = (re.findall(KEY, got) or [self.key])[-1]
        assert Checker().check_output(answer, got, 0), f"$ {command}\n{got}"
        if command.startswith(("duelay key create", "duelay key revoke")):
            self.wait_until_keys_are_read()

    def type(self, command):
        self.shell.stdin.write(f"{command}\necho; echo END\n")
        self.shell.stdin.flush()
        lines = []
        while (line := self.shell.stdout.readline()) != "END\n":
            assert line, "the shell has ended"
            lines.append(line)
        return "".join(lines).strip() + "\n" if "".join(lines).strip() else ""

    def wait_until_keys_are_read(self):
        """Wait until the server knows a key that was made just now, and take that back."""
        store = self.folder / "duels.db"
        key = create_key(store, "to wait", ["tell"])

        def status(**headers):
            address = f"{self.url}/experiments"
            return httpx.get(address, headers=headers, timeout=LONG).status_code

        wait_until(lambda: (status(), status(Authorization=f"Bearer {key}")) == (401, 200))
        with closing(sqlite3.connect(store, timeout=LONG)) as connection:
            connection.execute("DELETE FROM keys WHERE name = 'to wait'")
            connection.commit()

    def serve(self, command):
        self.stop()
        words = [sys.executable, "-m", *shlex.split(command)]
        if "--port" not in words:
            words += ["--port", self.port]
        self.server = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=self.folder)
        said = ""
        while "Uvicorn running" not in (line := self.server.stderr.readline()):
            assert line, said
            said += line if line.startswith("duelay:") else ""
        wait_until_healthy(self.port, self.server)
        return said

    def run(self, body):
        """Run lines of Python, and compare what they show."""
        body = body.replace('"duelay_..."', repr(self.key))
        test = doctest.DocTestParser().get_doctest(body, self.names, "page", "page", 0)
        before = os.getcwd()
        os.chdir(self.folder)
        said = []
        try:
            runner = doctest.DocTestRunner(Checker(), optionflags=doctest.ELLIPSIS)
            runner.run(test, out=said.append, clear_globs=False)
        finally:
            os.chdir(before)
        self.names = test.globs
        assert not runner.failures, "".join(said)

    def stop(self):
        if self.server is not None:
            self.server.terminate()
            self.server.wait(timeout=LONG)
            self.server.stderr.close()
            self.server = None

    def close(self):
        for found in self.names.values():
            if isinstance(found, Service):
                found.close()
        self.stop()
        self.shell.stdin.close()
        self.shell.stdout.close()
        self.shell.wait(timeout=LONG)


def commands(body):
    """Each line that begins with a dollar, with those it goes on in, and what follows it."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        n = 1
        while lines[n - 1].endswith("\\"):
            n += 1
        yield "\n".join(lines[:n]), "".join(f"{line}\n" for line in lines[n:])


@pytest.fixture
def reader(tmp_path):
    found = Reader(tmp_path)
    yield found
    found.close()


def test_what_the_page_of_the_service_shows_is_what_happens(reader):
    need("curl")
    reader.read(DOCS / "howto" / "service.md")


@pytest.fixture
def receiver():
    """Give the address of a server, and the messages that it gets."""
    got = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.headers["Duelay-Signature"], body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", got
        server.shutdown()
        thread.join()


def test_the_recipe_of_the_page_knows_what_the_service_has_signed(reader, receiver):
    url, got = receiver
    names, times = {}, []
    for example in doctest.DocTestParser().get_examples(fence("service.md", "def is_genuine"))[:2]:
        exec(example.source, names)
    is_genuine = names["is_genuine"]
    names["time"] = types.SimpleNamespace(time=lambda: times[-1])
    store = f"sqlite:///{reader.folder}/duels.db"
    experiment = Experiment.create(store, "buttons", ["red", "blue"], feedback="votes")
    reader.serve("duelay serve --store duels.db")
    begun = int(time.time())
    with httpx.Client(base_url=reader.url, timeout=LONG) as client:
        secret = client.post("/experiments/buttons/webhooks", json={"url": url}).json()["secret"]
    while (duel := experiment.ask()).id is not None:
        experiment.tell(duel, "blue")
    experiment.close()
    wait_until(lambda: got)
    header, body = got[0]
    assert b'"declared"' in body
    sent = int(header.split(",")[0].removeprefix("t="))
    assert begun <= sent <= time.time()
    times.append(sent + 298)
    assert is_genuine(secret, header, body)
    assert not is_genuine(secret, header, body.replace(b"blue", b"red"))
    assert not is_genuine(secret[::-1], header, body)
    assert not is_genuine(secret, header, body, now=sent + 302)
    assert not is_genuine(secret, "nonsense, ä", body)


def test_the_pages_name_every_metric_and_no_other(reader):
    reader.serve("duelay serve --store duels.db")
    with httpx.Client(base_url=reader.url, timeout=LONG) as client:
        client.post("/experiments", json={"name": "buttons", "arms": ["red", "blue"]})
        client.post("/experiments/buttons/duels")
        text = client.get("/metrics").text
    kinds = dict(re.findall(r"^# TYPE (duelay_\w+) (\w+)$", text, re.MULTILINE))
    kinds = {name: kind for name, kind in kinds.items() if not name.endswith("_created")}
    page = (DOCS / "howto" / "service.md").read_text()
    assert dict(re.findall(r"^\| `(duelay_\w+)` \| (\w+) \|", page, re.MULTILINE)) == kinds
    (rules,) = re.findall(r"```yaml\n(.*?)```", (DOCS / "howto" / "running.md").read_text(), re.S)
    used = set(re.findall(r"duelay_\w+", rules))
    parts = {f"{name}{end}" for name in kinds for end in ("", "_bucket", "_count", "_sum")}
    assert used and used <= parts


async def browser(app):
    """Show a page twice and choose; return what a FastAPI application answers."""
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://shop") as client,
    ):
        first, again = [(await client.get("/")).json() for _ in range(2)]
        told = [(await client.post(f"/chosen/{first['id']}")).json() for _ in range(2)]
        assert (await client.post("/chosen/nobody")).status_code == 404
        client.cookies.clear()
        other = (await client.get("/")).json()
        return first, again, other, told


@pytest.fixture
def shop(reader):
    """Make the experiment of the page, in a service that runs."""
    reader.serve("duelay serve --store duels.db")
    with connect(reader.url) as service:
        service.create("buttons", ["red", "green", "blue"])
        service.create("headline", ["short", "long"], display="one")
    return reader


def application(reader, title, said=""):
    """Run a program of the page; return what it names."""
    block = fence("web-frameworks.md", said or "app = ", f'title="{title}"')
    names = {"__name__": "shop"}
    exec(block.replace("8000", reader.port), names)
    opened = names.get("buttons") or names.get("headline")
    if opened is not None:
        reader.names |= {"service": opened._do.__self__}  # is closed at the end
    return names["app"]


def check_visit(first, again, other, told):
    assert first == again and first["id"] != other["id"]
    assert set(first["show"]) < {"red", "green", "blue"}
    assert len(first["show"]) == 2
    assert told == [{"status": "counted"}, {"status": "repeated"}]


@pytest.mark.parametrize("title", ["fastapi", "fastapi, in full"])
def test_a_fastapi_application_shows_a_duel_and_takes_its_conversion(shop, title):
    check_visit(*asyncio.run(browser(application(shop, title, "FastAPI("))))


def test_a_flask_application_shows_a_duel_and_takes_its_conversion(shop):
    pytest.importorskip("flask")
    app = application(shop, "flask", "Flask(")
    client = app.test_client()
    first, again = [client.get("/").json for _ in range(2)]
    told = [client.post(f"/chosen/{first['id']}").json for _ in range(2)]
    assert client.post("/chosen/nobody").status_code == 404
    check_visit(first, again, app.test_client().get("/").json, told)


def check_order(shop, visits, orders):
    """A visitor keeps its headline, orders count once, and who is not in the test may order."""
    assert visits[0] == visits[1] and visits[0]["headline"] in ("short", "long")
    assert [order["status"] for order in orders] == [
        "counted",
        "repeated",
        *["not in the test"] * 2,
    ]
    with connect(shop.url) as service:
        standing = service.open("headline").standing()
    assert (standing.tick, int(standing.rates.conversions.sum())) == (1, 1)


def test_a_fastapi_application_shows_one_arm_and_takes_a_late_order(shop):
    app = application(shop, "fastapi, one arm", "FastAPI(")

    async def visit():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
            visits = [(await client.get("/")).json() for _ in range(2)]
            orders = [(await client.post("/order")).json() for _ in range(2)]
            for cookies in ({}, {"shown": "nobody"}):
                client.cookies = httpx.Cookies(cookies)
                orders.append((await client.post("/order")).json())
            return visits, orders

    check_order(shop, *asyncio.run(visit()))


def test_a_flask_application_shows_one_arm_and_takes_a_late_order(shop):
    pytest.importorskip("flask")
    app = application(shop, "flask, one arm", "Flask(")
    client = app.test_client()
    visits = [client.get("/").json for _ in range(2)]
    orders = [client.post("/order").json for _ in range(2)]
    for value in ("", "nobody"):
        client.set_cookie("shown", value)
        orders.append(client.post("/order").json)
    check_order(shop, visits, orders)


def test_the_full_application_goes_on_where_the_service_does_not(shop):
    app = application(shop, "fastapi, in full", "FastAPI(")

    async def stop_and_visit():
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://shop") as web,
        ):
            unknown = (await web.post("/chosen/nobody")).status_code
            await asyncio.to_thread(shop.stop)
            shown = (await web.get("/")).json()
            return unknown, shown, (await web.post("/chosen/nobody")).status_code

    assert asyncio.run(stop_and_visit()) == (404, {"id": None, "show": ["red"]}, 503)


def test_a_page_that_shows_another_answer_is_found_out(reader):
    with pytest.raises(AssertionError, match="echo one"):
        reader.do("echo one", "two\n")
    reader.do("echo one", "one\n")
    with pytest.raises(AssertionError, match="Expected"):
        reader.run(">>> 1 + 1\n3\n")
