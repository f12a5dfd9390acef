"""The report of a standing: one model for the service, its schema, its clients and the page."""

import dataclasses
import json

import numpy as np
import pytest

from duelay.live import Experiment
from duelay.live.standing import StandingReport
from duelay.service import make_app

# What the service has always sent, in this order: programs in other languages read it.
FIELDS = [
    "name", "status", "headline", "leader", "winner", "error", "confidence", "guarantee",
    "feedback", "policy", "window", "now", "arms", "present", "duels", "plays", "conversions",
    "pending", "repeats", "late", "estimates", "evidence", "needed", "warnings", "alarms",
    "booking", "verdict", "verdict_words", "choice", "margin", "end", "budget", "until", "fallback",
    "archived", "loss", "p_value", "summary",
]  # fmt: skip
LATER = ["guardrails", "display", "rates"]  # an answer of an earlier version lacks them
NESTED = {
    "guarantee": ["kind", "words"],
    "estimates": ["mean", "lower", "upper"],
    "summary": ["state", "headline", "sentences", "best", "difference", "chance", "expected_loss",
                "cost", "days_left", "time_left", "lacks", "doubts", "arms", "harms"],
}  # fmt: skip


@pytest.fixture(params=["conversions", "votes"])
def standing(request, url):
    with Experiment.create(url, "buttons", ["red", "green"], feedback=request.param) as experiment:
        experiment.tell(experiment.ask(), "first")
        yield experiment.standing()


def test_the_report_has_the_fields_that_programs_read(standing):
    sent = StandingReport.of(standing).to_json()
    assert list(sent) == FIELDS + LATER
    assert {name: list(sent[name]) for name in NESTED} == NESTED
    assert json.loads(json.dumps(sent, allow_nan=False)) == sent


def test_a_report_that_is_read_again_is_the_same_and_leaves_out_what_it_does_not_know(standing):
    report = StandingReport.of(standing)
    sent = json.loads(json.dumps(report.to_json()))
    sent["estimates"]["of_later_versions"] = sent["of_later_versions"] = 1
    assert StandingReport.from_json(sent) == report


def test_the_report_of_an_earlier_service_is_read(standing):
    report = StandingReport.of(standing)
    sent = json.loads(json.dumps(report.to_json()))
    for name in LATER:
        del sent[name]
    del sent["summary"]["harms"]  # of a later version, too
    assert StandingReport.from_json(sent) == report


def test_numbers_that_json_does_not_have_are_null(standing):
    nothing = np.full((2, 2), np.nan)
    ends = {"lower": nothing - np.inf, "upper": np.full((2, 2), np.inf)}
    changed = dataclasses.replace(standing, mean=nothing, **ends)
    estimates = StandingReport.of(changed).to_json()["estimates"]
    assert estimates == dict.fromkeys(NESTED["estimates"], [[None, None]] * 2)


def test_the_description_of_the_service_lists_every_field():
    described = make_app("never-written.db").openapi()
    schemas = described["components"]["schemas"]
    assert list(schemas["StandingReport"]["properties"]) == FIELDS + LATER
    assert schemas["StandingReport"]["required"] == FIELDS
    for name, fields in NESTED.items():
        place = schemas["StandingReport"]["properties"][name]["$ref"].rpartition("/")[2]
        assert list(schemas[place]["properties"]) == fields
    for path, method, status in (
        ("/experiments", "post", "201"),
        ("/experiments/{name}", "get", "200"),
        ("/experiments/{name}", "patch", "200"),
    ):
        said = described["paths"][path][method]["responses"][status]["content"]
        assert said["application/json"]["schema"] == {"$ref": "#/components/schemas/StandingReport"}
