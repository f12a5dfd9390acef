"""What is not documented fails."""

import datetime
import importlib
import importlib.util
import os
import pkgutil
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

import duelay
from duelay import datasets, text

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
INDEX = DOCS / "index.md"
PROSE = "\n".join(page.read_text() for page in PAGES)
CODE = set(re.findall(r"[\w.]+", " ".join(re.findall(r"`([^`\n]+)`", PROSE))))
KNOWN = CODE | {part for name in CODE for part in name.split(".")}


REFERENCE = re.split(r"^## (.+)\n", (DOCS / "reference.md").read_text(), flags=re.MULTILINE)
ENTRIES = {  # the names with which an entry of a section begins
    module: re.findall(r"`(\w+)`", " ".join(re.findall(r"^- ((?:`\w+`(?:, )?)+):", body, re.M)))
    for module, body in zip(REFERENCE[1::2], REFERENCE[2::2], strict=True)
}


def public():
    """The modules that say what is public, but those whose names are all of the face."""
    rooms = (room.name for room in pkgutil.iter_modules(duelay.__path__, "duelay."))
    modules = [duelay, *(importlib.import_module(room) for room in rooms if "__" not in room)]
    named = [module for module in modules if hasattr(module, "__all__")]
    return [m for m in named if m is duelay or not set(m.__all__) <= set(duelay.__all__)]


@pytest.mark.parametrize("module", public(), ids=lambda m: m.__name__)
def test_every_public_name_has_a_place_in_the_reference(module):
    """Below the heading of its module: `- ` and the name in backticks, or several, and a colon."""
    entered = ENTRIES.get(module.__name__, [])
    lacking = [name for name in module.__all__ if name not in entered]
    assert lacking == [], f"docs/reference.md, below ## {module.__name__}"


def test_the_reference_names_nothing_twice_and_nothing_that_is_not_there():
    fields = {"DuelsLeft", "Evidence", "Guarantee"}  # their types: nobody imports them
    for module, names in ENTRIES.items():
        assert len(names) == len(set(names)), module
        there = fields | set(vars(importlib.import_module(module)))
        assert [name for name in names if name not in there] == [], module


def test_every_law_policy_dataset_and_parameter_has_a_place_in_the_docs():
    words = [*text.names("law"), *text.names("policy"), *datasets.names()]
    assert [word for word in words if word not in PROSE] == []
    for cls in text.names("policy").values():
        for parameter in text.parameters(cls):
            assert parameter.split("=")[0] in KNOWN, f"{cls.__name__}: {parameter}"


def links(page):
    """The files that a page links to, and its pictures."""
    targets = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text())
    return [(page.parent / target).resolve() for target in targets if "://" not in target]


def named_in_nav(entry):
    """The pages of a part of the navigation, in order."""
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry
    return [page for part in parts for page in named_in_nav(part)]


class MkDocsLoader(yaml.SafeLoader):
    """YAML with MkDocs's own tag."""


MkDocsLoader.add_constructor("!relative", lambda loader, node: node.value)


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, ROOT / "README.md", ROOT / "CHANGELOG.md"]:
        assert [str(target) for target in links(page) if not target.exists()] == [], page.name


def test_the_index_leads_to_every_page():
    assert [page.name for page in PAGES if page not in links(INDEX) and page != INDEX] == []


def test_the_navigation_has_every_page_once():
    site = yaml.load((ROOT / "mkdocs.yml").read_text(), MkDocsLoader)
    pages = sorted(page.relative_to(DOCS).as_posix() for page in PAGES)
    assert sorted(named_in_nav(site["nav"])) == pages, "nav of mkdocs.yml against docs/"


@pytest.mark.parametrize(
    "page, words",
    [
        ("reproduction.md", ["duelay reproduce --out"]),  # how to run the paper
        ("howto/live.md", ["Experiment.create(", ".ask(", ".tell("]),  # in one's own program
        ("choosing.md", ["duelay.recommend()"]),  # which policy to use
    ],
)
def test_what_is_most_asked_for_is_within_three_clicks_of_the_front_page(page, words):
    reached = {INDEX}
    for _ in range(3):
        reached |= {to for at in reached for to in links(at) if to in PAGES}
    assert DOCS / page in reached
    assert [word for word in words if word not in (DOCS / page).read_text()] == []


def test_the_front_page_offers_it_as_buttons():
    buttons = re.findall(r"\]\(([^)]+)\)\{ \.md-button", INDEX.read_text())
    assert buttons == ["howto/live.md", "choosing.md", "reproduction.md"]


def test_what_belongs_to_a_list_is_indented_by_four():
    """GitHub is content with two, MkDocs is not."""
    for page in PAGES:
        shallow = re.findall(r"^ {1,3}(?:[-*] |\d+\. |```).*", page.read_text(), re.MULTILINE)
        assert shallow == [], page.name


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
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path],
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
