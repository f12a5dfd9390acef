"""The pages, the site that is built of them, the citation file and the changelog."""

import datetime
import importlib.util
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

import duelay
from docs.test_reference import LISTED
from duelay import datasets, text

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
INDEX = DOCS / "index.md"
PROSE = "\n".join(page.read_text() for page in PAGES)


def test_every_law_policy_and_dataset_has_a_place_in_the_docs():
    words = [*text.names("law"), *text.names("policy"), *datasets.names()]
    assert [word for word in words if word not in PROSE] == []


def links(page):
    """The files that a page links to, and its pictures."""
    targets = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text())
    return [(page.parent / target).resolve() for target in targets if "://" not in target]


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, ROOT / "README.md", ROOT / "CHANGELOG.md"]:
        assert [str(target) for target in links(page) if not target.exists()] == [], page.name


class Assets(HTMLParser):
    """Collects what a browser fetches by itself; a link that somebody may click on is none."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        names = ["src", "srcset", "poster", "data"] + ["href"] * (tag in ("link", "image", "use"))
        if tag != "link" or attributes.get("rel") not in ("canonical", "prev", "next"):
            self.found += [attributes[name] for name in names if attributes.get(name)]


@pytest.mark.long
def test_the_site_builds_and_loads_nothing_from_the_network(tmp_path):
    if importlib.util.find_spec("material") is None or importlib.util.find_spec("mkdocs") is None:
        pytest.skip("the site needs MkDocs Material: pip install 'duelay[docs]'")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > len(PAGES)  # and 404.html
    for page in pages:
        source, assets = page.read_text(), Assets()
        assets.feed(source)
        assert assets.found
        assert [asset for asset in assets.found if re.match(r"(\w+:)?//", asset)] == [], page.name
        assert 'class="mermaid"' not in source  # its program would be fetched
        styles = "".join(re.findall(r"<style.*?</style>", source, re.DOTALL))
        assert not re.search(r"(url\(|@import)\s*[\"']?(\w+:)?//", styles), page.name
    for sheet in tmp_path.rglob("*.css"):
        fetched = re.findall(r"(?:url\(|@import)\s*[\"']?((?:\w+:)?//[^)]*)", sheet.read_text())
        assert fetched == [], sheet.name
    assert (tmp_path / "search" / "search_index.js").exists()
    reference = (tmp_path / "reference.html").read_text()
    names = [f"{module}.{name}" for module, names in LISTED.items() for name in names]
    assert [name for name in names if f'id="{name}"' not in reference] == []


def test_the_citation_file_is_sound():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["title"] == "duelay" and citation["cff-version"] == "1.2.0"
    assert citation["version"] == duelay.__version__
    assert isinstance(citation["date-released"], datetime.date)


def test_the_bibtex_in_the_docs_says_what_the_citation_file_says():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    (bibtex,) = re.findall(r"```bibtex\n(.*?)```", INDEX.read_text(), re.DOTALL)
    own, paper = bibtex.split("\n\n")
    fields = dict(re.findall(r"(\w+) += \{(.*)\}", own))
    assert fields["title"] == citation["title"] and fields["version"] == citation["version"]
    assert fields["year"] == str(citation["date-released"].year)
    assert fields["author"] == f"{{{citation['authors'][0]['name']}}}"
    (reference,) = citation["references"]
    fields = dict(re.findall(r"(\w+) += \{(.*)\}", paper))
    assert {key: str(reference[key]) for key in ("title", "journal", "year", "url")} == {
        key: fields[key] for key in ("title", "journal", "year", "url")
    }
    names = [f"{who['family-names']}, {who['given-names']}" for who in reference["authors"]]
    assert fields["author"] == " and ".join(names)
    assert "docs/index.md#cite" in (ROOT / "README.md").read_text()


def test_the_changelog_begins_with_this_version():
    """What is not released is called so, and what is released bears its number."""
    _, newest, told, *_ = re.split("^## (.+)\n", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
    is_released = re.fullmatch(r"[\d.]+", duelay.__version__)
    assert newest == (duelay.__version__ if is_released else "Unreleased")
    assert told.strip(), "nothing is told of it"
