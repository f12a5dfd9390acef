"""Files of others: what they are said to be, with their licences."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from duelay.page import render

# What the page has, and what its tests have.
FOLDERS = [render._FOLDER / "vendor", Path(__file__).parent / "vendor"]
LICENCES = {
    "0BSD": "Zero-Clause BSD",
    "MPL-2.0": "Mozilla Public License, version 2.0",
}


def told_in(folder):
    return json.loads((folder / "VENDORED.json").read_text("utf-8"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_checksums_are_those_that_are_told(folder):
    for one in told_in(folder):
        found = hashlib.sha256((folder / one["file"]).read_bytes()).hexdigest()
        assert found == one["sha256"], one["file"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_of_others_is_told_of_and_has_its_licence(folder):
    told = {one[each] for one in told_in(folder) for each in ("file", "licence_file")}
    assert {path.name for path in folder.iterdir()} == told | {"VENDORED.json"}
    for one in told_in(folder):
        words = (folder / one["licence_file"]).read_text("utf-8")
        assert LICENCES[one["licence"]].lower() in words.lower()
        assert re.fullmatch(r"\d+\.\d+\.\d+", one["version"])


def test_an_address_has_the_digest_of_its_content():
    for name, asset in render.STATIC.items():
        assert asset.address == f"/static/{hashlib.sha256(asset.content).hexdigest()[:16]}/{name}"
        assert asset.content_type.split(";")[0] in ("text/css", "text/javascript", "image/svg+xml")
    assert len(render.STATIC) == 5


def test_no_script_of_ours_needs_eval_or_writes_markup():
    text = render.STATIC["page.js"].text
    for word in ("innerHTML", "insertAdjacentHTML", "eval(", "new Function", "document.write"):
        assert word not in text
