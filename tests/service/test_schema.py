"""The description of the service, taken at its word: what it allows is answered as it says."""

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck
from schemathesis.specs.openapi import checks

from duelay.service import make_app

pytestmark = pytest.mark.long
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]
SCHEMA = schemathesis.openapi.from_dict(make_app("never-written.db").openapi())
SCHEMA.config.seed = 0
SENT = ("method", "url", "params", "headers", "json", "content")


@SCHEMA.parametrize()
@hypothesis.settings(
    max_examples=12,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_whatever_is_sent_is_answered_as_described(case, shared):
    if case.method != "DELETE" and len(repr(case.body)) % 2:  # else hardly anything is ever found
        case.path_parameters = {
            name: {"name": "buttons", "id": "0" * 26, "metric": "refund"}[name]
            for name in case.path_parameters or {}
        }
    sent = case.as_transport_kwargs(base_url="http://localhost")
    sent |= {"content": sent.pop("data")} if "data" in sent else {}
    sent = {name: sent[name] for name in SENT if sent.get(name) is not None}
    case.validate_response(shared.request(**sent), checks=CHECKS)
