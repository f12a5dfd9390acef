"""`duelay report`: the page of an experiment in one file, which loads nothing from anywhere."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from duelay.live import Experiment
from duelay.page.report import report, write_report
from live.hours import Hours
from page.sample import ARABIC, LONG, MARKUP

pytestmark = pytest.mark.interpreted
CHROMIUM = Path("/usr/bin/chromium")
END = Hours().now + 62 * 3600.0
ARMS = ("green", MARKUP, ARABIC, LONG.strip())


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A store with an experiment of some days."""
    found, hours = tmp_path_factory.mktemp("report") / "duels.db", Hours()
    with Experiment.create(found, "buttons <b>", ARMS, window="2d", clock=hours) as experiment:
        open_ones = []
        for n in range(240):
            hours.pass_by(900.0)
            open_ones.append(experiment.ask(unit=f"visitor-{n}"))
            if n % 3 == 0:
                experiment.tell(open_ones.pop(0))
    return found


@pytest.fixture(scope="module")
def page(path):
    with Experiment.open(path, "buttons <b>", clock=Hours(END)) as experiment:
        return report(experiment)


class Elements(HTMLParser):
    """All elements of a page: their names and attributes, and what scripts and styles hold."""

    def __init__(self, text):
        super().__init__()
        self.found, self.inline, self.is_inline = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self.is_inline = tag in ("script", "style") and "type" not in dict(attributes)
        if self.is_inline:
            self.inline.append([tag, ""])

    def handle_endtag(self, tag):
        self.is_inline = False

    def handle_data(self, data):
        if self.is_inline:
            self.inline[-1][1] += data


def test_it_loads_nothing_and_leads_nowhere(page):
    elements = Elements(page).found
    for tag, attributes in elements:
        assert tag not in ("link", "iframe", "img", "form", "button", "select", "base")
        assert tag != "input" or attributes["type"] == "hidden"
        assert "src" not in attributes and not any(name.startswith("hx-") for name in attributes)
        assert "style" not in attributes and not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "#").startswith("#"), attributes
    assert "url(" not in "".join(text for tag, text in Elements(page).inline if tag == "style")


def test_its_policy_allows_its_own_style_and_scripts_alone(page):
    elements = Elements(page)
    (policy,) = [
        attributes["content"]
        for tag, attributes in elements.found
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert {tag for tag, _ in elements.inline} == {"script", "style"}
    for tag, text in elements.inline:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        rule = re.search(rf"{tag}-src ([^;]*)", policy)[1]
        assert f"'sha256-{digest}'" in rule


def test_it_shows_the_experiment(page):
    assert "buttons &lt;b&gt;" in page and "<script>alert(1)" not in page
    for word in (ARABIC, "240", "Evidence", "Delays", "Assumptions"):
        assert word in page


def test_it_is_small_enough_for_a_mail(page):
    assert len(page.encode()) < 200_000


def test_the_picture_of_the_summary_is_an_image_that_needs_nothing_else(path, tmp_path):
    with Experiment.open(path, "buttons <b>", clock=Hours(END)) as experiment:
        text = write_report(experiment, tmp_path / "slide.svg").read_text("utf-8")
        headline = experiment.standing().summary.headline
    picture = ElementTree.fromstring(text)  # nothing is left unescaped
    assert {element.tag.rpartition("}")[2] for element in picture.iter()} <= {
        "svg",
        "title",
        "rect",
        "text",
    }
    names = {name for element in picture.iter() for name in element.attrib}
    assert not {name for name in names if name == "style" or name.startswith(("on", "{"))}
    assert headline in "".join(picture.itertext()) and "buttons <b>" in "".join(picture.itertext())


@pytest.mark.long
@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Chromium")
@pytest.mark.parametrize("scripts", [True, False])
def test_a_browser_shows_its_charts_with_and_without_scripts(path, tmp_path, scripts):
    sync_api = pytest.importorskip("playwright.sync_api")
    with Experiment.open(path, "buttons <b>", clock=Hours(END)) as experiment:
        file = write_report(experiment, tmp_path / "page.html")
    complaints = []
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        tab = browser.new_page(java_script_enabled=scripts, timezone_id="Asia/Tokyo")
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("console", lambda said: complaints.append(said.text))
        tab.on("request", lambda asked: complaints.append(asked.url)
               if asked.url != file.as_uri() else None)  # fmt: skip
        tab.goto(file.as_uri())
        assert tab.locator("h1").count() == 1
        assert tab.locator("figure.chart").count() >= 3
        assert tab.locator("figure.chart .picture").count() == tab.locator("figure.chart").count()
        assert tab.locator("figure.chart table").count() == tab.locator("figure.chart").count()
        browser.close()
    assert complaints == []
