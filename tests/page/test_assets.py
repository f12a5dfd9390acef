"""Files of others: what they are said to be, with their licences."""

import hashlib
import json
import re

from duelay.page import assets

FOLDER = assets._FOLDER / "vendor"
TOLD = json.loads((FOLDER / "VENDORED.json").read_text("utf-8"))


def test_checksums_are_those_that_are_told():
    for one in TOLD:
        found = hashlib.sha256((FOLDER / one["file"]).read_bytes()).hexdigest()
        assert found == one["sha256"], one["file"]


def test_every_file_of_others_is_told_of_and_has_its_licence():
    told = {one["file"] for one in TOLD} | {one["licence_file"] for one in TOLD}
    assert {path.name for path in FOLDER.iterdir()} == told | {"VENDORED.json"}
    words = {"0BSD": "Zero-Clause BSD", "MIT": "Permission is hereby granted"}
    for one in TOLD:
        assert words[one["licence"]] in (FOLDER / one["licence_file"]).read_text("utf-8")
        assert re.fullmatch(r"\d+\.\d+\.\d+", one["version"])


def test_an_address_has_the_digest_of_its_content():
    for name, asset in assets.STATIC.items():
        assert asset.address == f"/static/{hashlib.sha256(asset.content).hexdigest()[:16]}/{name}"
        assert asset.content_type.split(";")[0] in ("text/css", "text/javascript", "image/svg+xml")
    assert len(assets.STATIC) == 7


def test_no_script_of_ours_needs_eval_or_writes_markup():
    text = assets.STATIC["page.js"].text
    for word in ("innerHTML", "insertAdjacentHTML", "eval(", "new Function", "document.write"):
        assert word not in text
