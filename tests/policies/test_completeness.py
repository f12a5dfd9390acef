"""What a new policy needs besides its code; CONTRIBUTING.md shows an example.

Exported, it is under the contract (`test_contract.py`) and in the API reference by itself.
"""

import importlib
import json
import pkgutil
import re
from pathlib import Path

import pytest

import duelay
from duelay import policies, text
from duelay.testing import live_duels

ROOT = Path(__file__).parents[2]
EXPORTED = [getattr(policies, name) for name in policies.__all__]
every_policy = pytest.mark.parametrize("policy", EXPORTED, ids=lambda cls: cls.__name__)


def test_every_policy_is_exported():
    for module in pkgutil.walk_packages(policies.__path__, "duelay.policies."):
        importlib.import_module(module.name)
    named = [cls for cls in text.names("policy").values() if "duelay.policies" in cls.__module__]
    assert [cls for cls in named if cls not in EXPORTED] == [], "duelay/policies/__init__.py"


@every_policy
def test_a_policy_is_exported_from_duelay(policy):
    assert policy.__name__ in duelay.__all__, "duelay/__init__.py"


@every_policy
def test_a_policy_has_a_row_in_a_table_and_its_text_form_in_the_docs(policy):
    pages = [page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md")]
    rows = re.findall(r"^\|.*\|$", "\n".join(pages), re.MULTILINE)
    assert any(f"`{policy.__name__}`" in row for row in rows), "a table of policies in docs/"
    assert f"`{policy.text_name}`" in (ROOT / "docs" / "policies.md").read_text("utf-8")


@every_policy
def test_a_policy_has_golden_duels(policy):
    golden = json.loads((ROOT / "tests" / "simulation" / "duels.json").read_text("utf-8"))
    forms = [form for form in golden if re.match(rf"{policy.text_name}(:|$)", form)]
    assert forms, "python -m benchmarks golden"


@every_policy
def test_a_policy_is_in_the_changelog(policy):
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(rf"\b{policy.__name__}\b|\b{policy.text_name}\b", changelog)


def test_the_example_of_the_guide_is_a_policy(module, tmp_path, monkeypatch):
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    module("random_pairs", source=example)
    monkeypatch.syspath_prepend(tmp_path)
    example = importlib.import_module("random_pairs")
    policy = policies.parse("random-pairs:window=20")
    assert policy == example.RandomPairs(window=20)
    duels = live_duels(policy, duelay.datasets.load("tennis"), duelay.delays.Geometric(0.1), 200)
    assert {tuple(pair) for pair in duels} > {(0, 1), (1, 0), (2, 2)}
