"""What is not documented fails."""

import re
from pathlib import Path

import pytest
import yaml

import duelay
from duelay import (
    assumptions,
    datasets,
    delays,
    engine,
    experiments,
    ledger,
    policies,
    testing,
    text,
    theory,
)

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
PROSE = "\n".join(page.read_text() for page in PAGES)
CODE = set(re.findall(r"[\w.]+", " ".join(re.findall(r"`([^`\n]+)`", PROSE))))
KNOWN = CODE | {part for name in CODE for part in name.split(".")}


@pytest.mark.parametrize(
    "module",
    [duelay, assumptions, delays, policies, theory, datasets, engine, testing, ledger, experiments],
    ids=lambda m: m.__name__,
)
def test_every_public_name_has_a_place_in_the_docs(module):
    assert [name for name in module.__all__ if name not in KNOWN] == []


def test_every_law_policy_dataset_and_parameter_has_a_place_in_the_docs():
    words = [*text.names("law"), *text.names("policy"), *datasets.names()]
    assert [word for word in words if word not in PROSE] == []
    for cls in text.names("policy").values():
        for parameter in text.parameters(cls):
            assert parameter.split("=")[0] in KNOWN, f"{cls.__name__}: {parameter}"


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, ROOT / "README.md", ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_index_leads_to_every_page():
    index = (ROOT / "docs" / "index.md").read_text()
    assert [page.name for page in PAGES if page.name not in index and page.name != "index.md"] == []


def test_the_citation_file_is_sound():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["title"] == "duelay" and citation["references"]


def test_the_changelog_tells_of_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert "## Unreleased" in changelog or f"## {duelay.__version__}" in changelog
