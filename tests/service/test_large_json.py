"""Where large bodies are parsed and large answers are written: in threads, and in small pieces."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from duelay.service import large_json, models
from duelay.service.errors import in_words
from duelay.service.large_json import LargeJsonResponse
from duelay.service.write_queue import WriteQueue


def is_in_loop():
    """Whether this thread runs the event loop that serves everybody."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@pytest.fixture
def work(monkeypatch):
    """What was parsed and written: how much at once, and whether in the event loop."""
    found = {"loads": [], "dumps": [], "validate": []}

    class Watched:
        JSONDecodeError = json.JSONDecodeError

        @staticmethod
        def loads(body):
            found["loads"].append((len(body), is_in_loop()))
            return json.loads(body)

        @staticmethod
        def dumps(value, **more):
            text = json.dumps(value, **more)
            found["dumps"].append((len(text), is_in_loop()))
            return text

    validate = models.Question.model_validate_json

    def watched(body):
        found["validate"].append((len(body), is_in_loop()))
        return validate(body)

    monkeypatch.setattr(large_json, "json", Watched)
    monkeypatch.setattr(models.Question, "model_validate_json", watched)
    return found


UNKNOWN = {f"field {n}": "x" for n in range(45_000)}


@pytest.mark.parametrize("method, path, kind", [
    ("POST", "/experiments/buttons/duels", "validate"),
    ("POST", "/experiments/buttons/answers", "loads"),
    ("PATCH", "/experiments/buttons", "loads"),
    ("POST", "/experiments/buttons/webhooks", "loads"),
    ("POST", "/experiments", "loads"),
])  # fmt: skip
def test_a_megabyte_of_unknown_fields_is_parsed_in_a_thread_and_refused_at_the_first(
    client, work, method, path, kind
):
    answered = client.request(method, path, json=UNKNOWN)
    assert answered.status_code == 422 and "field 0: extra inputs" in answered.json()["error"]
    assert "more" not in answered.json()["error"]  # the others were not even looked at
    ((size, in_loop),) = work[kind]
    assert size > 700_000 and not in_loop
    client.request(method, path, json={"small": 1})
    assert work[kind][-1][1]  # a small one is not worth a thread


def test_many_answers_that_are_wrong_stop_at_the_first(client):
    many = {"answers": [{"nobody": n} for n in range(9000)]}
    said = client.post("/experiments/buttons/answers", json=many).json()["error"]
    assert said.startswith("answers.0.nobody: extra inputs") and "more" not in said


def test_a_standing_of_many_arms_is_written_in_a_thread_row_by_row(client, work):
    arms = [f"arm {n}" for n in range(120)]
    client.post("/experiments", json={"name": "many", "arms": arms})
    work["dumps"].clear()
    found = client.get("/experiments/many")
    assert found.json()["arms"] == arms and len(found.json()["plays"]) == 120
    assert not any(in_loop for _, in_loop in work["dumps"])
    assert sum(size for size, _ in work["dumps"]) > 20 * max(size for size, _ in work["dumps"])


def test_the_log_and_the_list_are_written_in_a_thread(client, work):
    client.post("/experiments/buttons/duels", json={"count": 50})
    for path in ("/experiments/buttons/log", "/experiments"):
        work["dumps"].clear()
        assert client.get(path).status_code == 200
        assert work["dumps"] and not any(in_loop for _, in_loop in work["dumps"])


@pytest.mark.parametrize("value", [
    {}, [], [[]], {"a": [[1.5, None], [True, "ü\n"]], "b": {"c": [{}]}, "d": "x"}, [[1], 2], "€",
])  # fmt: skip
def test_what_is_written_is_what_json_is(value):
    assert json.loads(LargeJsonResponse(value).body) == value


@pytest.mark.parametrize("typed, meant", [
    ("arm", "arms"), ("polcy", "policy"), ("self_duel", "self_duels"), ("forgetafter", "forget_af"),
])  # fmt: skip
def test_an_unknown_field_offers_the_one_that_was_meant(client, typed, meant):
    body = {"name": "x", "arms": ["a", "b"], typed: 1}
    said = client.post("/experiments", json=body).json()["error"]
    assert said.startswith(f"{typed}: ") and f"did you mean {meant}" in said


def test_what_is_wrong_with_a_body_is_one_sentence():
    with pytest.raises(ValueError) as caught:
        models.NewExperiment(nam="x")
    assert in_words(caught.value.errors()).startswith("nam: ")


def test_few_large_batches_are_told_at_one_time(client, monkeypatch):
    """Each is a transaction of its own, for which asks of the same experiment wait."""
    inside, most, submit = 0, 0, WriteQueue.submit

    async def counted(self, *requests):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.05)  # without a limit, others come meanwhile
        await submit(self, *requests)
        inside -= 1

    monkeypatch.setattr(WriteQueue, "submit", counted)
    batch = {"answers": [{"id": f"made up {n}"} for n in range(501)]}
    with ThreadPoolExecutor(6) as threads:
        told = list(threads.map(
            lambda _: client.post("/experiments/buttons/answers", json=batch).status_code, range(6)
        ))  # fmt: skip
    assert told == [200] * 6 and most <= 2
