"""Pages: every view in every state, nothing unescaped, nothing that the policy forbids."""

import functools
import gzip
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from duelay.page import formats, render, view_models
from page import sample
from page.html_page import Page

EDITOR = render.Viewer(may_change=True, may_keys=True, csrf="token", signed_in="a key", base="/d")
READER = render.Viewer()
STATIC = render.Viewer(is_static=True)
KEYS = [
    SimpleNamespace(id="0f" * 8, name=name, scopes=("ask", "tell"), experiments=only, created=0.0,
                    is_revoked=bool(only))
    for name, only in ((sample.MARKUP, None), ("web", ("a", sample.MARKUP)))
]  # fmt: skip


def pages(viewer):
    """What makes every page there is, by name; when first asked for, and not while collecting."""
    made = {}
    for name, said in sample.SAMPLES.items():
        made[f"experiment {name}"] = lambda said=said: render.experiment_page(
            *said(), viewer, notice=sample.MARKUP
        )
        made[f"part {name}"] = lambda said=said: render.experiment_part(*said(), viewer)
    if not viewer.is_static:
        view = sample.nasty()[0]
        said = {"name": sample.MARKUP, "arms": "a\nb</textarea><script>alert(1)</script>"}
        found = {"arm": "1", "outcome": "tie"}
        made |= {
            "list": lambda: render.list_page(sample.listed(), viewer),
            "list part": lambda: render.list_part(sample.listed(), viewer),
            "list empty": lambda: render.list_page([], viewer, sample.MARKUP, said),
            "pair": lambda: render.pair_page(view, sample.pair(view), viewer),
            "pair part": lambda: render.pair_part(view, sample.pair(view), viewer),
            "log": lambda: render.log_page(view, sample.duels(), found, "88", viewer),
            "log empty": lambda: render.log_page(view, [], {}, "", viewer),
            "keys": lambda: render.keys_page(KEYS, viewer, "duelay_0f", problem=sample.MARKUP),
            "keys empty": lambda: render.keys_page([], viewer),
            "login": lambda: render.login_page(sample.MARKUP, '/"><script>alert(1)</script>'),
            "error": lambda: render.error_page(404, sample.MARKUP, viewer),
            "error again": lambda: render.error_page(503, "Compiling.", viewer, again=3),
        }
    return {name: functools.cache(make) for name, make in made.items()}


ALL = {"editor": pages(EDITOR), "reader": pages(READER), "static": pages(STATIC)}
EACH = [pytest.param(make, id=f"{who}: {name}")
        for who, made in ALL.items() for name, make in made.items()]  # fmt: skip


@pytest.mark.parametrize("make", EACH)
def test_names_are_text_and_nothing_is_inline(make):
    text = make()
    page = Page(text)
    is_static = "Content-Security-Policy" in text
    for tag, attributes in page.elements:
        assert "style" not in attributes
        assert not any(name.startswith(("on", "hx-on")) for name in attributes), (tag, attributes)
        assert not (attributes.get("href") or "").lower().startswith("javascript")
    for attributes in page.all("script"):
        assert is_static or attributes["src"].split("/static/")[0] in ("", "/d")
    if not is_static:
        assert page.all("style") == []
    assert page.all("img") == []  # as the names would have it
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("make", EACH)
def test_what_people_reach_is_labelled(make):
    text = make()
    page = Page(text)
    is_whole = text.startswith("<!doctype")
    heads = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    if is_whole:
        assert heads[0] == 1 and heads.count(1) == 1
        assert len(page.all("main")) == 1
    assert all(after <= before + 1 for before, after in zip(heads, heads[1:], strict=False))
    labels = {attributes.get("for") for attributes in page.all("label")}
    for tag in ("input", "select", "textarea"):
        for attributes in page.all(tag):
            if attributes.get("type") not in ("hidden", "radio", "checkbox"):
                assert attributes["id"] in labels
    tables = len(page.all("table"))
    assert len(page.all("caption")) == tables
    assert all("scope" in attributes for attributes in page.all("th"))
    for attributes in page.all("a"):
        if attributes["href"].startswith("#"):
            assert f'id="{attributes["href"][1:]}"' in text


def test_every_form_that_posts_has_the_token_and_only_who_may_sees_it():
    for name, make in ALL["editor"].items():
        page = Page(make())
        posts = [one for one in page.all("form") if one.get("method") == "post"]
        tokens = [one for one in page.all("input") if one.get("name") == "csrf"]
        if name != "login":
            assert len(posts) == len(tokens), name
            assert {one["value"] for one in tokens} <= {"token"}
    for name, make in ALL["reader"].items():
        if name not in ("login", "keys", "keys empty"):
            assert not [one for one in Page(make()).all("form") if one.get("method") == "post"], (
                name
            )


def test_addresses_quote_names_and_have_the_prefix():
    text = render.experiment_page(*sample.nasty(), EDITOR)
    links = [one["href"] for one in Page(text).all("a")]
    quoted = "/d/e/%3Cscript%3Ealert%281%29%3C%2Fscript%3E"
    assert f"{quoted}/log" in links and f"{quoted}/pair/0/1" in links
    live = next(one for _, one in Page(text).elements if one.get("id") == "live")
    assert live["hx-get"] == quoted
    assert all(link.startswith(("/d/", "#")) for link in links)


def test_a_report_is_one_file_without_forms_polling_or_links():
    text = render.experiment_page(*sample.nasty(), STATIC)
    page = Page(text)
    assert page.all("form") == page.all("link") == []
    assert [one["href"] for one in page.all("a")] == ["#main"]
    assert "hx-get" not in text.split("<script>")[0]
    assert all("src" not in one for one in page.all("script"))
    assert len(text) < 150_000


def test_the_policy_of_a_report_names_what_is_inline_in_it():
    text = render.experiment_page(*sample.busy(), STATIC)
    page = Page(text)
    policy = next(one["content"] for one in page.all("meta") if "http-equiv" in one)
    inline = re.findall(r"<(style|script)>(.*?)</\1>", text, re.DOTALL)
    assert len(inline) == 2
    assert all(render.source_of(content) in policy for _, content in inline)
    assert "unsafe" not in policy and "unsafe" not in render.POLICY


@pytest.mark.parametrize("write", [render.experiment_page, render.experiment_part])
def test_every_chart_has_a_picture_and_a_table(write):
    text = write(*sample.nasty(), READER)
    assert text.count('class="picture"') == text.count('<details class="numbers"') == 5
    assert "nan" not in "".join(one["d"] for one in Page(text).all("path"))


@pytest.mark.parametrize("name", ["busy", "declared", "off", "nothing", "paused"])
def test_the_advice_is_shown_in_words_and_by_a_shape(name):
    view, checked = sample.SAMPLES[name]()
    text = render.experiment_part(view, checked, READER)
    assert view.advice.words.split(": ")[-1] in Page(text).text
    assert re.search(r'id="advice">\s*<svg class="icon"', text)


def test_the_headline_alone_is_announced():
    page = Page(render.experiment_page(*sample.off(), READER))
    live = [one for _, one in page.elements if "aria-live" in one]
    assert [one["id"] for one in live] == ["headline"]


def test_the_headline_is_that_of_the_summary_and_names_stay_as_they_are():
    view, checked = sample.busy()
    page = render.experiment_page(view, checked, EDITOR)
    assert f'aria-live="polite">{view.standing.leader} leads' in page


def test_once_a_winner_is_declared_the_badge_says_so():
    view = replace(sample.changed(sample.busy()[0], winner="green", verdict="winner"), share=0.05)
    for status, shown in (("running", "declared"), ("paused", "paused")):
        page = render.experiment_page(sample.changed(view, status=status), None, EDITOR)
        assert f'id="status">{shown}<' in page


def test_of_300_arms_the_matrix_shows_30():
    text = render.experiment_part(*sample.many(300), READER)
    assert text.count('<td class="self"') == 30
    assert text.count('id="arm-') == 300


def test_a_new_experiment_keeps_what_was_typed():
    said = {"name": "buttons", "arms": "red\ngreen", "goal": "regret", "window": "3d"}
    text = render.list_page([], EDITOR, "give it a better name", said)
    assert "red\ngreen</textarea>" in text
    page = Page(text)
    values = {one["name"]: one.get("value") for one in page.all("input") if "checked" in one}
    assert values == {"goal": "regret", "feedback": "conversions", "display": "pair"}
    assert next(one for one in page.all("input") if one.get("name") == "window")["value"] == "3d"
    assert "open" in next(one for one in page.all("details") if one["id"] == "new")


def test_the_log_offers_the_outcomes_that_there_are():
    view = sample.busy()[0]
    for feedback, has in (("conversions", False), ("votes", True)):
        page = render.log_page(sample.changed(view, feedback=feedback), [], {}, "", EDITOR)
        assert "<option>late" in page and ("<option>tie" in page) == has


def test_older_duels_keep_the_filter():
    view = sample.busy()[0]
    text = render.log_page(view, sample.duels(), {"arm": "1", "before": "90"}, "80", READER)
    links = [one["href"] for one in Page(text).all("a")]
    assert "/e/checkout%20button/log?arm=1&before=80" in links


def test_control_characters_of_names_are_not_sent():
    said = view_models.ListEntry("a\x00b\x1b", "running", None, None, None, "", (), 0, 0, 0, ())
    text = render.list_part([said], READER)
    assert "\x00" not in text and "\x1b" not in text and "a\ufffdb\ufffd" in text


def test_a_first_view_is_light():
    page = render.experiment_page(*sample.many(12), EDITOR).encode()
    used = (render._STYLE, *render._SCRIPTS, "icon.svg")
    loaded = [render.STATIC[name].content for name in used]
    assert sum(len(gzip.compress(content)) for content in (page, *loaded)) < 60_000


def test_facts_without_duels_are_left_out():
    ids = [
        {one["id"] for _, one in Page(text).elements if "id" in one}
        for text in (
            render.experiment_part(*make(), READER) for make in (sample.busy, sample.nothing)
        )
    ]
    assert {"fact-pending", "fact-silent", "fact-repeats"} <= ids[0]
    assert "fact-pending" in ids[1] and not {"fact-silent", "fact-repeats"} & ids[1]


def test_a_pair_in_either_order_has_shares_of_duels_and_of_votes_those_heard():
    view = sample.busy()[0]
    text = Page(render.pair_part(view, sample.pair(view), READER)).text
    assert "green 1,204 11 268 22 % 20" in text
    view = sample.paused()[0]
    text = Page(render.pair_part(view, sample.pair(view), READER)).text
    assert "A 1,204 11 600 268 327 5 45 % 20" in text


def test_the_table_of_arms_counts_wins_as_first_and_of_votes_all_answers():
    for make, is_vote in ((sample.busy, False), (sample.paused, True)):
        view, checked = make()
        arm, text = view.arms[0], Page(render.experiment_part(view, checked, READER)).text
        shown = arm.heard if is_vote else arm.conversions
        assert f"{arm.duels:,} {shown:,} {arm.pending}" in text


def test_guard_rails_are_a_table_with_an_alarm():
    view, checked = sample.busy()
    assert 'id="guardrails"' not in render.experiment_part(view, checked, READER)
    rail = sample.guardrail(["green", "blue", "red"])
    view = replace(view, standing=replace(view.standing, guardrails=[rail]))
    whole = render.experiment_part(view, checked, READER)
    text = Page(re.search(r'<section id="guardrails".*?</section>', whole, re.DOTALL)[0]).text
    assert "refund" in text and "5.1 % 4 to 6.5 % 3,999 203" in text and "+0.1" in text
    assert text.count("red alarm ") == 1 and "blue alarm" not in text


def test_texts_of_the_page_need_no_connection_to_elsewhere():
    for text in (render.experiment_page(*sample.busy(), EDITOR), render.STATIC["page.css"].text):
        assert not re.search(r"(?:src|href)=\"(?:https?:)?//|url\(|@import", text)


def test_beside_a_verdict_stands_why_intervals_do_not_contradict_it_and_they_are_on_request():
    for viewer in (READER, STATIC):
        view, checked = sample.declared()
        text = render.experiment_page(view, checked, viewer)
        assert text.count(view.weighed) == 1
        assert text.index('id="headline"') < text.index(view.weighed) < text.index('id="arms"')
        arm = next(each for each in view.arms if each.mean is not None)
        shown = str(formats.span(arm.lower, arm.upper))
        details = text[text.index('<details id="intervals"') :].partition("</details>")
        assert shown in details[0]
        before, _, after = text.partition('<details id="intervals"')
        matrix = after[after.index('id="matrix"') : after.index('<p class="key"')]
        assert 'class="whisker' not in before and "interval" not in matrix
        text = render.experiment_page(*sample.busy(), viewer)
        assert 'id="intervals"' not in text and 'id="verdict-words"' not in text


def test_what_is_pending_bounds_what_is_still_to_come():
    view, checked = sample.busy()
    checked = replace(checked, still=(90.0, 106.0, 130.0))
    for pending, shown in ((0, None), (50, "50"), (412, "106")):
        text = render.experiment_page(replace(view, pending=pending), checked, READER)
        found = re.search(r'id="fact-still"><dt>Still to come</dt><dd>(\S+)', text)
        assert (found and found[1]) == shown


def test_a_warning_is_printed_once():
    view, checked = sample.busy()
    report = replace(view.standing, warnings=("the law is odd", "and so is time"))
    off = view_models.Advice("off", "Something is off: the law is odd.")
    view = replace(view, standing=report, advice=off)
    text = render.experiment_page(view, checked, READER)
    assert text.count("the law is odd") == 1 and text.count("and so is time") == 1
