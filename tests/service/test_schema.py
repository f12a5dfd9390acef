"""The description of the service, taken at its word: what it allows is answered as it says."""

import hypothesis
import pytest
import schemathesis
from schemathesis import checks

from duelay.service import make_app

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def described(shared):
    """The description, of a service with an experiment."""
    return schemathesis.openapi.from_asgi("/openapi.json", shared.app)
