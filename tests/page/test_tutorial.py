"""The steps of the tutorial in a browser; `python -m benchmarks tutorial` writes its pictures."""

import io
import os
import random
import re
import types
from pathlib import Path

import numpy as np
import pytest

from duelay.live import connect
from live.hours import Hours
from page.browsers import DESKTOP, Served

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorials" / "first-ab-test.md"
TEXT = PAGE.read_text("utf-8")
FOLDER = os.environ.get("DUELAY_TUTORIAL")  # pictures are written there, if it is said
MOST = 60_000  # bytes of a picture
WHEN = 440  # visitors, at which the page is looked at, before the winner is declared
SPEED = 1000  # of `duelay serve --clock 1000x`
# What is copied, once it is there: a text that begins with the name, or the bytes of a picture.
COPIED = """async (kind) => {
  for (;;) {
    for (const item of await navigator.clipboard.read()) {
      if (!item.types.includes(kind)) continue;
      const found = await item.getType(kind);
      if (kind === "text/plain") return await found.text();
      return [...new Uint8Array(await found.arrayBuffer())];
    }
    await new Promise((done) => setTimeout(done, 50));
  }
}"""
pytestmark = [pytest.mark.long, pytest.mark.interpreted]


def take(page, name, begin, end):
    """Write a picture of the page from one height to another."""
    if not FOLDER:
        return
    from PIL import Image

    page.mouse.move(0, 0)
    clip = {"x": 0, "y": begin, "width": 1280, "height": end - begin}
    shot = Image.open(io.BytesIO(page.screenshot(clip=clip, full_page=True))).convert("RGB")
    shown = shot.resize((1024, round(0.8 * (end - begin))), Image.Resampling.LANCZOS)
    shown.save(Path(FOLDER) / name, lossless=False, quality=82, method=6)


def script(served, clock, seen):
    """Run visitors.py on another clock; `seen` is called as visitors come. Return what it says."""
    (source,) = re.findall(r'```python title="visitors.py"\n(.*?)```', TEXT, re.DOTALL)
    said = []
    slept = 0

    def sleep(seconds):
        nonlocal slept
        slept += 1
        clock.pass_by(SPEED * seconds)
        seen(slept)

    time = types.SimpleNamespace(time=lambda: clock() / SPEED, sleep=sleep)
    source = source.replace("import time\n", "").replace("http://127.0.0.1:8000", served.url)
    service = connect(served.url)  # closed here: the script leaves that to its end
    names = {"time": time, "print": lambda *words: said.append(" ".join(words))}
    random.seed(1)
    exec(source.replace(f'connect("{served.url}")', "service"), names | {"service": service})
    service.close()
    return said


def test_the_tutorial_leads_from_nothing_to_a_finished_test_and_its_slide(
    look, tmp_path, monkeypatch
):
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)  # the plan is simulated elsewhere
    # The same duels each time: in one experiment in twenty a test of assumptions is alarmed.
    default_rng = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed=1: default_rng(seed))
    clock = Hours(1_794_838_590.0)
    with Served(f"sqlite:///{tmp_path}/duels.db", clock=clock) as served:
        window = look(
            served.url, viewport=DESKTOP, timezone_id="Europe/Berlin",
            permissions=["clipboard-read", "clipboard-write"],
        )  # fmt: skip
        page = window.page
        page.goto("/")
        page.fill("#new-name", "button colour")
        page.fill("#new-arms", "green\nblue")
        page.check("[name=display][value=one]")
        page.fill("#new-window", "6h")
        page.fill("#new-margin", "20%")
        page.evaluate("document.activeElement.blur()")
        take(page, "new.webp", 0, 780)

        page.click("text=How long will this take?")
        page.fill("#plan-visitors", "860")
        page.fill("#plan-rates", "10, 15")
        page.fill("#plan-delay", "2h")
        page.click("text=How long?")
        page.locator("#plan-table").wait_for()
        assert page.locator("#plan-result .plot .picture").count() == 2
        page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
        box = page.locator("#plan-result").bounding_box()
        take(page, "plan.webp", box["y"] - 80, box["y"] + box["height"])
        page.click("text=Make it")
        page.locator("#begin").wait_for()
        assert "blue" not in page.inner_text("#code-python")  # the code is for any arms

        def seen(visitors):
            if visitors == WHEN:
                window.wait_for_duels(WHEN - 1)
                assert page.locator("#advice.go-on").count() == 1
                page.locator("#tests-list").wait_for()
                box = page.locator("#arms").bounding_box()
                take(page, "moving.webp", 0, box["y"] + box["height"] + 30)

        (said,) = script(served, clock, seen)
        assert f"{said}\n" in TEXT
        page.locator("#advice.stop").wait_for()
        assert page.inner_text("#headline").startswith("blue wins")
        take(page, "declared.webp", 0, 900)

        page.click("text=Finish and show blue to everybody")
        page.click("#confirm button[value=yes]")
        page.locator("#status.finished").wait_for()
        with connect(served.url) as service:
            assert service.open("button colour").ask().arm == "blue"

        page.click("text=Copy summary")
        summary = page.evaluate(COPIED, "text/plain")
        assert summary.startswith("button colour: ") and "blue" in summary.splitlines()[0]
        page.click("text=Copy picture")
        picture = bytes(page.evaluate(COPIED, "image/png"))
        assert picture.startswith(b"\x89PNG") and len(picture) > 10_000
        assert window.take_troubles() == []
        page.click("text=Open picture")
        page.wait_for_url("**/summary.svg")
        slide = page.context.request.get(page.url).text()
        assert slide.startswith("<svg") and "blue wins" in slide


def test_its_pictures_are_there_and_are_small():
    names = re.findall(r"!\[[^\]]+\]\((\w+\.webp)\)", TEXT)
    assert len(names) == 4
    assert {path.name for path in PAGE.parent.glob("*.webp")} == set(names)
    assert [name for name in names if (PAGE.parent / name).stat().st_size > MOST] == []
