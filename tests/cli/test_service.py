"""`duelay serve`, `key`, `ask` and `tell`, each as somebody types it."""

import json
import re
import socket

import pytest

from duelay import live
from duelay.live import Experiment, Store
from service.served import free_port

pytestmark = pytest.mark.interpreted


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "duels.db"
    Experiment.create(found, "buttons", ["red", "green"]).close()
    Experiment.create(found, "models", ["old", "new"], feedback="votes").close()
    return found


def test_a_duel_is_asked_as_a_line_of_json_and_told(command, path):
    status, shown, complaints = command("ask", path, "buttons", "--unit", "ann", "--key", "k")
    duel = json.loads(shown)
    assert (status, complaints, shown.count("\n")) == (0, "", 1)
    assert set(duel) == {"id", "first", "second", "settled", "winner"}
    assert json.loads(command("ask", path, "buttons", "--key", "k")[1]) == duel
    assert json.loads(command("ask", path, "buttons", "--unit", "ann")[1]) == duel
    assert command("tell", path, duel["id"]) == (0, "counted\n", "")
    assert command("tell", path, duel["id"]) == (0, "repeated\n", "")


def test_a_name_is_shown_as_it_is_written(command, path):
    Experiment.create(path, "Knöpfe", ["grün", "süß"]).close()
    assert "ü" in command("ask", path, "Knöpfe")[1]


def test_a_service_says_that_it_serves_only_where_it_can_listen(command, path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        status, shown, complaints = command("serve", "--store", path, "--port",
                                            taken.getsockname()[1])  # fmt: skip
    assert status == 1 and "cannot listen" in complaints
    assert "serving" not in shown + complaints


def test_a_vote_names_the_winner(command, path):
    duel = json.loads(command("ask", path, "models")[1])
    status, _, complaints = command("tell", path, duel["id"])
    assert status == 2 and "winner must be 'first'" in complaints
    assert command("tell", path, duel["id"], "--winner", "new") == (0, "counted\n", "")


def test_what_is_not_there_is_a_sentence(command, path, tmp_path, monkeypatch):
    monkeypatch.setitem(live.connect.__kwdefaults__, "patience", 0.0)
    status, _, complaints = command("ask", path, "button")
    assert status == 2 and "no experiment 'button'" in complaints and "buttons" in complaints
    status, _, complaints = command("tell", path, "nothing")
    assert status != 0 and "no duel 'nothing'" in complaints and "Traceback" not in complaints
    status, _, complaints = command("ask", tmp_path / "none.db", "buttons")
    assert status == 1 and "there is no file" in complaints
    status, _, complaints = command("ask", "http://127.0.0.1:9", "buttons")
    assert status == 1 and "does not answer" in complaints


def test_keys_are_made_listed_and_revoked(command, path):
    assert command("key", "list", path) == (0, "there is no key\n", "")
    status, key, complaints = command("key", "create", path)
    assert (status, complaints) == (0, "")
    assert re.fullmatch(r"duelay_[0-9a-f]{16}_[0-9a-f]{64}\n", key)
    made = command("key", "create", path, "--name", "the shop", "--scope", "administer",
                   "--experiment", "buttons", "--experiment", "models")  # fmt: skip
    shown = command("key", "list", path)[1]
    first, second = shown.splitlines()[-2:]
    assert first.split()[:2] == [key.split("_")[1], "key"] and "ask, tell" in first
    assert "the shop" in second and "administer" in second and "buttons, models" in second
    for each in (key, made[1]):
        assert each.strip().split("_")[2] not in shown
    assert command("key", "revoke", path, key.split("_")[1]) == (0, "revoked\n", "")
    assert "revoked" in command("key", "list", path)[1].splitlines()[-2]
    status, _, complaints = command("key", "revoke", path, key.strip())
    assert status == 2 and "that is not revoked" in complaints
    assert key.split("_")[2].strip() not in complaints
    status, _, complaints = command("key", "create", path, "--scope", "rule")
    assert status == 2 and "scope" in complaints


def test_serve_says_what_it_does_and_hides_a_password(command, path, monkeypatch):
    from duelay import service

    served, port = [], free_port()
    monkeypatch.setattr(service, "serve", lambda *words, **more: served.append((words, more)))
    status, _, said = command("serve", "--store", path, "--port", port, "--log-level", "warning",
                              "--import", "mine", "--clock", "1000x")  # fmt: skip
    assert status == 0
    assert f"serving sqlite:///{path} at http://127.0.0.1:{port}, see /docs" in said
    assert "there is no key: it listens on this machine alone" in said
    assert served == [
        (
            (str(path), "127.0.0.1", port, 1),
            {"log_level": "WARNING", "modules": ("mine",), "private_webhooks": False,
             "clock": "1000x"},
        )
    ]  # fmt: skip
    status, _, said = command("serve", "--store", path, "--host", "0.0.0.0")
    assert status == 2 and "as long as there is no key" in said and "serving" not in said
    command("key", "create", path)
    status, _, said = command("serve", "--store", path, "--host", "0.0.0.0", "--port", port,
                              "--workers", 2)  # fmt: skip
    assert status == 0 and "there is no key" not in said and len(served) == 2
    for wrong in (("--port", 0), ("--workers", 0), ("--log-level", "loud"), ("--clock", "fast")):
        assert command("serve", "--store", path, *wrong)[0] == 2
    monkeypatch.setattr(Store, "need", lambda self, makes=False: None)
    monkeypatch.setattr(service.keys, "list_keys", lambda store: ())
    monkeypatch.setattr(service.server, "check_host", lambda store, host: None)
    said = command("serve", "--store", "postgresql://me:hidden@host/duels", "--port", port)[2]
    assert "serving postgresql+psycopg://me:***@host/duels" in said and "hidden" not in said


@pytest.mark.long
def test_a_service_does_as_well_as_a_store(command, path, tmp_path, monkeypatch):
    from duelay.service.keys import create_key
    from service.served import Server

    monkeypatch.setenv("DUELAY_KEY", create_key(path, "k", ["ask", "tell"]))
    with Server(str(path), tmp_path) as server:
        duel = json.loads(command("ask", server.url, "buttons", "--unit", "ann")[1])
        assert command("tell", server.url, duel["id"]) == (0, "counted\n", "")
        status, shown, _ = command("standing", server.url, "buttons")
        assert status == 0 and "arm" in shown and "red" in shown
        status, shown, _ = command("standing", server.url)
        assert [line.split(":")[0] for line in shown.splitlines()] == ["buttons", "models"]
        status, _, complaints = command("ask", server.url, "nothing")
        assert status == 2 and "no such experiment" in complaints
        monkeypatch.setenv("DUELAY_KEY", "wrong")
        status, _, complaints = command("ask", server.url, "buttons")
        assert status != 0 and "send a key that is good" in complaints
        assert "Traceback" not in complaints
