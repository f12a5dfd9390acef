"""The commands on a store of live experiments, each as somebody types it."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import click
import pytest
from sqlalchemy import update

from duelay.cli import stores
from duelay.live import Experiment, Store, maintenance, verify
from duelay.live.storage import schema
from live.hours import Hours, settle

LONG_AGO = 1.7e9


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with two experiments, one of them decided."""
    path = tmp_path_factory.mktemp("made") / "duels.db"
    with closing(Store(path)) as store:
        buttons = Experiment.create(store, "buttons", ["red", "green", "blue"])
        for n in range(6):
            duel = buttons.ask(unit=f"visitor {n}")
            if n % 2:
                buttons.tell(duel)
        hours = Hours(LONG_AGO)
        models = Experiment.create(
            store, "two models", ["old", "new"], feedback="votes", policy="decide:wait=1h",
            clock=hours,
        )  # fmt: skip
        models.tell_all([(models.ask(), "new") for _ in range(20)])
        hours.pass_by(3600)
        settle(models)
        assert models.standing().winner is not None
    return path


@pytest.fixture
def path(made, tmp_path):
    """The same, to be changed."""
    return Path(shutil.copy(made, tmp_path))


def edit(path, *statements):
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_standing_prints_the_table_of_one_and_a_line_for_each_of_all(command, path):
    status, shown, complaints = command("standing", path, "two models")
    assert (status, complaints) == (0, "")
    assert shown.startswith("new wins\n- Of 100 visitors, ")
    assert "\n\nnew wins: declared after 20 duels (wrong in at most 5 % of" in shown
    assert "arm  leader beats it" in shown
    status, shown, complaints = command("standing", path)
    assert (status, complaints) == (0, "")
    first, second = shown.splitlines()
    assert first.startswith("buttons: ") and " after 6 duels" in first
    assert second.startswith("two models: new wins: declared after 20 duels")


def test_an_address_does_as_well_as_a_path(command, path):
    assert (
        command("standing", f"sqlite:///{path}", "buttons")[:2]
        == (command("standing", path, "buttons")[:2])
    )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_check_reads_what_export_has_written(command, path, tmp_path, ending):
    file = tmp_path / f"duels.{ending}"
    assert command("export", path, "buttons", file) == (0, f"wrote {file}\n", "")
    status, shown, _ = command("check", file)
    assert status == 0 and shown.startswith("6 duels of 3 arms, 3 answers (conversions)")


def test_a_store_that_is_sound_verifies(command, path):
    assert command("verify", path) == (0, "nothing differs: buttons, two models\n", "")
    assert command("verify", path, "buttons") == (0, "nothing differs: buttons\n", "")


def test_verify_names_what_differs_and_in_which_experiment(command, path):
    edit(path, "UPDATE experiments SET heard = 8 WHERE name = 'buttons'")
    differs = "buttons: 8 answers are counted, and 3 are there\n"
    assert command("verify", path) == (1, differs, "")
    assert command("verify", path, "buttons") == (1, differs, "")
    assert command("verify", path, "two models")[0] == 0


def test_verify_of_an_experiment_that_is_not_there_is_not_all_well(command, path):
    status, shown, complaints = command("verify", path, "botons")
    assert (status, shown) == (2, "")
    assert complaints.startswith(
        "duelay: no experiment 'botons' (did you mean buttons?) in sqlite:"
    )
    assert complaints.endswith("there are: buttons, two models\n")


def test_migrate_makes_a_store_and_leaves_one_of_this_version_alone(command, path, tmp_path):
    status, shown, _ = command("migrate", path)
    assert status == 0 and shown.endswith("duels.db is of schema 0008 already\n")
    new = tmp_path / "new.db"
    status, shown, _ = command("migrate", new)
    assert status == 0 and shown.endswith("new.db is new, of schema 0008\n")
    assert command("verify", new) == (0, "nothing differs: there is no experiment\n", "")
    assert command("standing", new) == (0, "", "")


def test_migrate_says_from_where_to_where(command, path, monkeypatch):
    monkeypatch.setattr(Store, "migrate", lambda store: ("0001", "0002"))
    status, shown, _ = command("migrate", path)
    assert status == 0 and shown.endswith("duels.db is now of schema 0002, and was of 0001\n")


def test_a_store_of_a_later_version_is_left_alone(command, path):
    edit(path, "UPDATE duelay_version SET version_num = '9999'")
    for words in (["migrate"], ["standing"], ["verify"]):
        status, shown, complaints = command(*words, path)
        assert (status, shown) == (1, "")
        assert "was written by a later version of duelay (its schema is 9999, " in complaints


def test_a_backup_is_a_store(command, path, tmp_path):
    copy = tmp_path / "copy.db"
    status, shown, _ = command("backup", path, copy)
    assert status == 0 and shown == f"wrote {copy}, {copy.stat().st_size:,} bytes\n"
    assert command("standing", copy) == command("standing", path)
    assert command("verify", copy)[0] == 0
    status, _, complaints = command("backup", path, copy)
    assert status == 2
    assert complaints == f"duelay: there is a file {copy} already: name another one\n"


def test_a_store_of_an_earlier_version_is_backed_up_before_it_is_migrated(command, tmp_path):
    """In the order in which the message asks for it."""
    path, copy = tmp_path / "first.db", tmp_path / "copy.db"
    first = Path(__file__).parents[1] / "live" / "stores" / "first.sql"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(first.read_text())
    status, _, complaints = command("standing", path)
    assert status == 1 and "make a backup" in complaints
    status, _, complaints = command("backup", path, copy)
    assert (status, complaints) == (0, "")
    before = Store(copy).revision()
    assert before == Store(path).revision()
    assert command("migrate", path)[0] == 0
    assert Store(copy).revision() == before != Store(path).revision()
    assert command("migrate", copy)[0] == 0
    assert command("standing", copy) == command("standing", path)


def test_booking_is_held_and_released(command, path):
    with closing(Store(path)) as store:
        name = Experiment.names(store)[0]
        for word, booking in (("hold", "held"), ("release", "running")):
            assert command(word, path, name) == (0, f"{name}: booking is {booking}\n", "")
            assert Experiment.open(store, name).booking == booking


def test_upkeep_folds_what_is_old_and_says_of_which_experiment(command, path):
    with closing(Store(path)) as store:
        old = Experiment.create(store, "old", ["a", "b"], window="1d", clock=lambda: LONG_AGO)
        for _ in range(3):
            old.tell(old.ask())
        lone = Experiment.create(store, "lone", ["a", "b"], window="1d", clock=lambda: LONG_AGO)
        lone.ask()  # nobody has settled or closed it
        with store.writing() as connection:  # they go by the clock of the store from now on
            connection.execute(update(schema.experiments).values(clock=None))
    assert command("upkeep", path, "lone", "--forget-after", "90d")[1] == "lone: 1 duel folded\n"
    status, shown, _ = command("upkeep", path, "--forget-after", "90d")
    assert status == 0 and shown.splitlines() == [
        "buttons: no duel is that old",
        "two models: 20 duels folded",
        "old: 3 duels folded",
        "lone: no duel is that old",
    ]
    assert command("verify", path)[0] == 0


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        (["standing", "nix.db"], 1, "there is no file"),
        (["verify", "nix.db"], 1, "there is no file"),
        (["backup", "nix.db", "copy.db"], 1, "there is no file"),
        (["standing", "mysql://somebody@host/x"], 2, "store must be SQLite or PostgreSQL, such as"),
        (["standing", "mysql://me:secret@host/x"], 2, "got 'mysql://me:***@host/x'"),
        (["standing", ""], 2, "store must be an address such as"),
        (["migrate", "nowhere/duels.db"], 1, "nowhere for the store: make it, or name another one"),
        (["standing", "duels.db", "button"], 2, "no experiment 'button' (did you mean buttons?)"),
        (
            ["export", "duels.db", "buttons", "a.txt"],
            2,
            "must end in .csv or .parquet, got 'a.txt'",
        ),
        (["export", "duels.db", "button", "a.csv"], 2, "no experiment 'button'"),
        (["backup", "duels.db", "nowhere/a.db"], 2, "there is no folder nowhere"),
        (["upkeep", "duels.db", "--forget-after", "90"], 2, "--forget-after must be a duration"),
        (["upkeep", "duels.db", "button", "--forget-after", "9d"], 2, "no experiment 'button'"),
        (["verify", "text.db"], 1, "is not a store (file is not a database)"),
    ],
)
def test_what_is_wrong_is_one_sentence(command, path, monkeypatch, arguments, status, message):
    monkeypatch.chdir(path.parent)
    (path.parent / "text.db").write_text("hello, this is no database\n" * 50)
    found, shown, complaints = command(*arguments)
    assert (found, shown) == (status, "")
    assert complaints.startswith("duelay: ") and complaints.count("\n") == 1
    assert message in complaints
    assert not (path.parent / "nix.db").exists()


def test_a_server_that_is_not_there_is_one_sentence_without_the_password(command):
    pytest.importorskip("psycopg")
    status, _, complaints = command("standing", "postgresql://me:secret@127.0.0.1:1/duels")
    assert status == 1 and "secret" not in complaints
    assert complaints.count("\n") == 1
    assert complaints.endswith("check that the server runs and lets you in\n")


def test_a_backup_of_postgresql_hides_the_password_from_other_users(command, tmp_path, monkeypatch):
    pytest.importorskip("psycopg")
    seen = {}

    def dump(arguments, env, **_):
        seen.update(arguments=arguments, password=env["PGPASSWORD"])
        file = next(word for word in arguments if word.startswith("--file="))
        Path(file.removeprefix("--file=")).write_bytes(b"PGDMP")
        return subprocess.CompletedProcess(arguments, 0, "", "")

    monkeypatch.setattr(maintenance.subprocess, "run", dump)
    monkeypatch.setattr(maintenance.shutil, "which", lambda name: name)
    monkeypatch.setattr(Store, "revision", lambda store: "0001")
    file = tmp_path / "duels.dump"
    status, shown, _ = command("backup", "postgresql://me:secret@host/duels", file)
    assert (status, shown) == (0, f"wrote {file}, 5 bytes\n")
    assert seen["password"] == "secret" and "secret" not in str(seen["arguments"])
    assert "--dbname=postgresql://me@host/duels" in seen["arguments"]


def hide(monkeypatch, *names):
    """Let packages seem not to be installed."""
    from duelay._core import extras

    found = extras.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name in names else found(name))


def test_what_is_missing_for_live_experiments_is_said(command, path, monkeypatch):
    hide(monkeypatch, "alembic")
    for name in [name for name in sys.modules if name.startswith("duelay.live")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("duelay.live")
    assert command("verify", path) == (
        2,
        "",
        "duelay: live experiments need alembic: install it with pip install 'duelay[live]'\n",
    )


def test_what_is_missing_for_postgresql_is_said(command, monkeypatch):
    hide(monkeypatch, "psycopg")
    assert command("standing", "postgresql://me@127.0.0.1:1/duels") == (
        2,
        "",
        "duelay: stores in PostgreSQL need psycopg: install it with "
        "pip install 'duelay[postgres]'\n",
    )


def test_who_waits_at_a_terminal_sees_how_far_it_is(path, tmp_path, monkeypatch):
    seen = []

    class Bar:
        n = 0

        def update(self, more):
            self.n += more
            seen.append(self.n)

    move = stores._counting(Bar())
    for n in (10_000, 20_000, 10_000, 30_000):  # the third is of the next experiment
        move(n)
    assert seen == [10_000, 20_000, 30_000, 50_000]


def test_verify_knows_a_name_from_python_too(path):
    with closing(Store(path)) as store:
        assert verify(store, "buttons") == ()
        with pytest.raises(LookupError, match="'x' .*buttons, two"):
            verify(store, "x")


def test_an_experiment_is_finished_reopened_and_archived(command, path):
    status, shown, _ = command("finish", path, "buttons", "green")
    assert status == 0 and "green is shown" in shown
    with Experiment.open(path, "buttons") as experiment:
        assert experiment.ask().winner == "green"
    assert command("archive", path, "buttons")[0] == 0
    assert "buttons:" not in command("standing", path)[1]
    assert "buttons:" in command("standing", path, "--archived")[1]
    assert command("archive", path, "buttons", "--undo")[0] == 0
    assert command("reopen", path, "buttons")[0] == 0
    with Experiment.open(path, "buttons") as experiment:
        assert experiment.status == "running"
    status, _, complaints = command("finish", path, "buttons", "nobody")
    assert status == 2 and "arm must be" in complaints


def test_an_arm_is_added_by_the_shell_once_its_cost_is_said(command, monkeypatch, tmp_path):
    path = f"{tmp_path}/duels.db"
    Experiment.create(path, "buttons", ["red", "green"]).close()
    answers = iter([False, True])
    asked = []

    def confirm(words, abort):
        asked.append(words)
        if not next(answers):
            raise click.Abort

    monkeypatch.setattr(click, "confirm", confirm)
    status, shown, _ = command("add-arm", path, "buttons", "blue")
    assert status == 130 and "too early to say" in shown
    status, shown, _ = command("add-arm", path, "buttons", "blue")
    assert status == 0 and "too early to say" in shown and len(asked) == 2
    assert command("add-arm", path, "buttons", "black", "--yes")[0] == 0 and len(asked) == 2
    with Experiment.open(path, "buttons") as experiment:
        assert experiment.arms == ("red", "green", "blue", "black")
    status, _, complaints = command("add-arm", path, "buttons", "red", "--yes")
    assert status == 2 and "red" in complaints
