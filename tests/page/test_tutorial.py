"""The steps of the tutorial in a browser; `python -m benchmarks tutorial` writes its pictures."""

import io
import os
import random
import re
import types
from pathlib import Path

import pytest

from duelay.live import connect
from live.hours import Hours
from page.browsers import DESKTOP, Served

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorials" / "first-live-experiment.md"
TEXT = PAGE.read_text("utf-8")
FOLDER = os.environ.get("DUELAY_TUTORIAL")  # pictures are written there, if it is said
MOST = 60_000  # bytes of a picture
WHEN = 140  # visitors, at which the page is looked at: it is declared at some 200
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
        clock.pass_by(seconds)
        seen(slept)

    time = types.SimpleNamespace(time=clock, sleep=sleep)
    source = source.replace("import time\n", "").replace("http://127.0.0.1:8000", served.url)
    service = connect(served.url)  # closed here: the script leaves that to its end
    names = {"time": time, "print": lambda *words: said.append(" ".join(words))}
    random.seed(1)
    exec(source.replace(f'connect("{served.url}")', "service"), names | {"service": service})
    service.close()
    return said


def test_the_tutorial_leads_from_nothing_to_a_declared_winner(look, tmp_path):
    clock = Hours(1_794_838_590.0)
    with Served(f"sqlite:///{tmp_path}/duels.db", clock=clock) as served:
        window = look(served.url, viewport=DESKTOP, timezone_id="Europe/Berlin")
        page = window.page
        page.goto("/")
        page.fill("#new-name", "button colour")
        page.fill("#new-arms", "red\ngreen\nblue")
        page.fill("#new-window", "1h")
        page.evaluate("document.activeElement.blur()")
        take(page, "new.webp", 0, 780)
        page.click("text=Make it")
        page.locator("#begin").wait_for()
        # A reader's is at the usual port.
        page.evaluate(
            """(port) => document.querySelectorAll("pre code").forEach((code) =>
            (code.textContent = code.textContent.replaceAll(port, "8000")))""",
            str(served.port),
        )
        box = page.locator("section:has(#code-title)").bounding_box()
        take(page, "code.webp", box["y"] - 30, box["y"] + box["height"] + 40)

        def seen(visitors):
            if visitors == WHEN:
                window.wait_for_duels(WHEN - 1)
                assert page.locator("#advice.go-on").count() == 1
                page.locator("#tests-list").wait_for()
                box = page.locator("#matrix").bounding_box()
                take(page, "moving.webp", 0, box["y"] + box["height"] + 30)

        (said,) = script(served, clock, seen)
        assert f"{said}\n" in TEXT
        page.locator("#advice.stop").wait_for()
        assert page.inner_text("#headline").startswith("green wins")
        take(page, "declared.webp", 0, 900)
        assert window.take_troubles() == []


def test_its_pictures_are_there_and_are_small():
    names = re.findall(r"!\[[^\]]+\]\((\w+\.webp)\)", TEXT)
    assert len(names) == 4
    assert {path.name for path in PAGE.parent.glob("*.webp")} == set(names)
    assert [name for name in names if (PAGE.parent / name).stat().st_size > MOST] == []
