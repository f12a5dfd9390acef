"""What the page of a million duels costs a browser: bytes and elements, at first and renewed.

How long that takes is for `python -m benchmarks page`, which writes the seconds.
"""

import httpx
import pytest

from page.browsers import Served
from page.million import fill

PART = {"HX-Request": "true", "Accept-Encoding": "gzip"}
pytestmark = [pytest.mark.long, pytest.mark.compiled]


def test_a_million_duels_are_a_light_page_that_is_renewed_by_little(chromium, look, tmp_path):
    experiment = fill(f"sqlite:///{tmp_path}/duels.db")
    with Served(experiment.store, clock=experiment._writer.clock) as served:
        window = look(served.url)
        kilobytes, _ = window.first_view("/e/million")
        assert kilobytes < 150
        assert window.page.evaluate("document.querySelectorAll('*').length") < 2500
        with httpx.stream("GET", f"{served.url}/e/million", headers=PART, timeout=300.0) as part:
            assert part.status_code == 200
            assert sum(len(piece) for piece in part.iter_raw()) < 30_000
        window.wait_for_update(lambda: experiment.tell(experiment.ask().id))
    experiment.close()
