"""Signing in: cookies that nobody else can write, and forms that no other site can send."""

import time
from urllib.parse import quote, urlsplit

import pytest
from sqlalchemy import delete

from duelay.live import Experiment
from duelay.live.storage import schema
from duelay.live.storage.store import open_store
from duelay.service.auth import HOURS, Session, Sessions, safe_next
from duelay.service.keys import create_key, revoke_key
from service.browser_client import HERE, Browser, sent_to

SCOPES = ["ask", "tell", "administer"]


@pytest.fixture
def made(url):
    """A store with two experiments, and a key that may do everything."""
    for name in ("one", "two"):
        Experiment.create(url, name, ["red", "green", "blue"]).close()
    return url, create_key(url, "operator", SCOPES)


@pytest.fixture
def browser(made, serve):
    return Browser(serve(made[0]))


def status_of(url, name="one"):
    experiment = Experiment.open(url, name)
    try:
        return experiment.status
    finally:
        experiment.close()


def is_closed(browser, path="/e/one"):
    return sent_to(browser.get(path)) == f"/login?next={path}"


# The cookie.


def test_where_keys_exist_every_page_asks_for_one(browser):
    for path in ("/", "/e/one", "/e/nothing", "/e/one/pair/0/1", "/e/one/log", "/e/one/export.csv",
                 "/keys"):  # fmt: skip
        assert is_closed(browser, path)
    assert sent_to(browser.get("/e/one/log?arm=1&seen=4")) == "/login?next=/e/one/log%3Farm%3D1"
    assert browser.get("/login").status_code == 200


def test_a_page_that_is_open_is_sent_to_sign_in_as_a_whole(browser):
    answered = browser.get("/e/one?seen=7", part=True)
    assert answered.status_code == 401
    assert answered.headers["hx-redirect"] == "/login?next=/e/one"


def test_a_good_key_signs_in_and_the_cookie_does_not_have_it(browser, made):
    assert sent_to(browser.sign_in(made[1], "/e/one")) == "/e/one"
    assert browser.get("/e/one").status_code == 200
    _, id, secret = made[1].split("_")
    assert secret not in browser.cookie.value and made[1] not in browser.cookie.value


def test_the_cookie_is_kept_from_scripts_and_other_sites_and_expires(browser, made):
    begun = time.time()
    words = browser.sign_in(made[1]).headers["set-cookie"]
    assert "HttpOnly" in words and "SameSite=lax" in words and "Path=/" in words
    assert f"Max-Age={HOURS * 3600}" in words and "Secure" not in words
    assert begun - 1 <= browser.cookie.expires - HOURS * 3600 <= time.time() + 1


def test_over_https_the_cookie_is_secure(browser, made):
    browser.at = "https://duels.example.org"
    assert "Secure" in browser.sign_in(made[1]).headers["set-cookie"]
    assert browser.get("/e/one").status_code == 200


def test_servers_at_two_ports_of_one_machine_do_not_take_each_others_cookie(browser, made):
    browser.sign_in(made[1])
    name = browser.cookie.name
    browser.at = "http://127.0.0.1:8001"
    browser.client.cookies.clear()
    browser.sign_in(made[1])
    assert name == "duelay_8000" and browser.cookie.name == "duelay_8001"
    browser.at = "http://duels.example.org"
    browser.client.cookies.clear()
    browser.sign_in(made[1])
    assert browser.cookie.name == "duelay"


@pytest.mark.parametrize("key", ["", "duelay_", "x" * 5000, "duelay_" + "0" * 16 + "_" + "0" * 64])
def test_a_wrong_key_does_not_sign_in(browser, monkeypatch, key):
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr("duelay.service.web.pages._sleep", sleep)
    answered = browser.sign_in(key)
    assert answered.status_code == 401 and slept == [0.5]
    assert "set-cookie" not in answered.headers and "no key that is good" in answered.text
    assert is_closed(browser)


def test_a_cookie_that_was_changed_is_none(browser, made):
    browser.sign_in(made[1])
    good, name = browser.cookie.value, browser.cookie.name
    other = Sessions("another secret, just as long")
    forged = other._cookies.dumps([made[1].split("_")[1], "0" * 32])
    body, at, signature = good.split(".")
    for bad in (good[:-2] + "AA", f"{body}.{signature}", f"{body[:-1]}.{at}.{signature}", forged,
                "", ".", "é", "null", good + "."):  # fmt: skip
        browser.client.cookies.clear()
        answered = browser.get("/e/one", Cookie=f"{name}={bad}".encode())
        assert answered.status_code == 303, bad
    assert browser.get("/e/one", Cookie=f"{name}={good}").status_code == 200


def test_a_cookie_ends_after_twelve_hours(browser, made, monkeypatch):
    now = time.time()
    with monkeypatch.context() as patch:
        patch.setattr("itsdangerous.timed.time.time", lambda: now)
        browser.sign_in(made[1])
    good, name = browser.cookie.value, browser.cookie.name

    def is_in(hours):
        with monkeypatch.context() as patch:
            patch.setattr("itsdangerous.timed.time.time", lambda: now + 3600 * hours)
            return browser.get("/e/one", Cookie=f"{name}={good}").status_code == 200

    assert is_in(11.9) and not is_in(12.1) and is_in(0)


def test_a_key_that_is_revoked_is_out_at_once(browser, made):
    browser.sign_in(made[1])
    other = create_key(made[0], "other", SCOPES)
    browser.client.app.state.context.keys.forget()  # else it would be known in two seconds
    assert browser.get("/e/one").status_code == 200
    assert sent_to(browser.post("/keys/revoke", id=made[1].split("_")[1])) == "/keys"
    assert is_closed(browser)
    browser.sign_in(other)
    revoke_key(made[0], other)
    browser.client.app.state.context.keys.forget()
    assert is_closed(browser)


def test_a_store_that_loses_its_keys_is_not_open_to_all(browser, made):
    assert browser.client.get("/experiments").status_code == 401
    with open_store(made[0]).writing() as connection:
        connection.execute(delete(schema.keys))
    browser.client.app.state.context.keys.forget()
    assert browser.client.get("/experiments").status_code == 401
    assert is_closed(browser)


def test_who_signs_out_is_out(browser, made):
    browser.sign_in(made[1])
    kept = browser.cookie.value
    assert sent_to(browser.post("/logout")) == "/login"
    assert not list(browser.client.cookies.jar) and is_closed(browser)
    browser.client.cookies.set(f"duelay_{urlsplit(HERE).port}", kept)
    assert is_closed(browser)  # for a copy of the cookie, too


def test_a_session_is_no_key_for_programs_and_a_key_no_session(browser, made):
    browser.sign_in(made[1])
    assert browser.client.get("/experiments").status_code == 401
    browser.client.cookies.clear()
    answered = browser.get("/e/one", Authorization=f"Bearer {made[1]}")
    assert answered.status_code == 303


# Where to go on.


@pytest.mark.parametrize(
    "address",
    ["//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil.example", "evil", "",
     "/\tevil", "/\n/evil.example", "javascript:alert(1)", "///evil.example", "/x\\y",
     " //evil.example"],
)  # fmt: skip
def test_signing_in_leads_to_no_other_site(browser, made, address):
    assert sent_to(browser.sign_in(made[1], address)) == "/"
    assert "evil" not in browser.get(f"/login?next={quote(address, safe='')}").text


def test_signing_in_leads_on_to_where_somebody_was():
    for address in ("/", "/e/one", "/e/a%20b/log?arm=1&outcome=first%20won"):
        assert safe_next(address) == address


# Forms.


@pytest.mark.parametrize("has_keys", [False, True])
@pytest.mark.parametrize(
    ("token", "headers"),
    [
        ("", {}),
        ("0" * 80, {}),
        ("é", {}),
        (None, {"Sec-Fetch-Site": "cross-site"}),
        (None, {"Sec-Fetch-Site": "same-site"}),
        (None, {"Sec-Fetch-Site": None, "Origin": "https://evil.example"}),
        (None, {"Sec-Fetch-Site": None, "Origin": "null"}),
        (None, {"Sec-Fetch-Site": None, "Origin": "http://127.0.0.1:9000"}),
    ],
)
def test_a_form_of_another_site_changes_nothing(url, serve, has_keys, token, headers):
    Experiment.create(url, "one", ["red", "green"]).close()
    key = create_key(url, "operator", SCOPES) if has_keys else None
    browser = Browser(serve(url))
    if has_keys:
        browser.sign_in(key)
    browser.get("/")
    for path, fields in (
        ("/e/one/do", {"what": "pause"}),
        ("/new", {"name": "two", "arms": "a\nb"}),
        ("/keys", {"name": "k", "scopes": "administer"}),
        ("/keys/revoke", {"id": "0"}),
        ("/logout", {"x": "1"}),
    ):
        answered = browser.post(path, token=token, headers=headers, **fields)
        assert answered.status_code == 403 and "nothing was changed" in answered.text, path
    assert status_of(url) == "running" and browser.get("/e/one").status_code == 200
    assert browser.get("/e/two").status_code == 404
    assert sent_to(browser.post("/e/one/do", what="pause")) == "/e/one"
    assert status_of(url) == "paused"


def test_another_site_cannot_sign_somebody_in(browser, made):
    answered = browser.post("/login", token="", headers={"Sec-Fetch-Site": "cross-site"},
                            key=made[1], next="/")  # fmt: skip
    assert answered.status_code == 403 and "set-cookie" not in answered.headers


def test_a_browser_that_says_its_origin_alone_may_send_forms(browser, made):
    browser.sign_in(made[1])
    answered = browser.post("/e/one/do", headers={"Sec-Fetch-Site": None}, what="pause")
    assert sent_to(answered) == "/e/one"
    answered = browser.post(
        "/e/one/do", headers={"Sec-Fetch-Site": None, "Origin": None}, what="resume"
    )
    assert sent_to(answered) == "/e/one"


def test_a_token_is_of_its_session(browser, made):
    browser.sign_in(made[1])
    token = browser.token()
    browser.sign_in(made[1])
    assert browser.post("/e/one/do", token=token, what="pause").status_code == 403
    assert status_of(made[0]) == "running"


def test_tokens_differ_and_all_are_good():
    sessions, session = Sessions(), Session("", "0" * 32)
    tokens = {sessions.token(session) for _ in range(100)}
    assert len(tokens) == 100
    assert all(sessions.is_token(session, token) for token in tokens)
    for other in (Session("x", "0" * 32), Session("", "1" * 32)):
        assert not any(sessions.is_token(other, token) for token in tokens)


def test_what_is_no_form_is_refused(browser, made):
    browser.sign_in(made[1])
    for kind in ("application/json", "multipart/form-data; boundary=x", "text/plain"):
        answered = browser.client.post(
            f"{HERE}/e/one/do", content=b"what=pause", headers={"Content-Type": kind}
        )
        assert answered.status_code == 422
    many = "&".join(f"f{n}=1" for n in range(200))
    for body in (b"what=\xff", many.encode()):
        answered = browser.client.post(
            f"{HERE}/e/one/do",
            content=body,
            headers={"Content-Type": "application/x-www-form-urlencoded"},
        )
        assert answered.status_code in (403, 422)
    assert status_of(made[0]) == "running"


def test_without_keys_another_site_calls_nothing_either(url, serve):
    Experiment.create(url, "one", ["red", "green"]).close()
    client = serve(url)
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        for method, path in (
            ("POST", "/experiments/one/duels"),
            ("PATCH", "/experiments/one"),
            ("GET", "/experiments/one"),
            ("PUT", "/duels/x/conversion"),
        ):
            answered = client.request(method, path, headers=headers)
            assert answered.status_code == 403 and list(answered.json()) == ["error"], path
    for headers in ({"Sec-Fetch-Site": "same-origin"}, {"Origin": "http://localhost"}, {}):
        assert client.post("/experiments/one/duels", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "host", ["http://evil.example:8000", "http://evil.example", "http://127.0.0.1.evil.example",
             "http://10.0.0.1:8000", "http://localhost.evil.example"],
)  # fmt: skip
def test_without_keys_a_name_that_leads_here_from_elsewhere_shows_nothing(url, serve, host):
    Experiment.create(url, "secret name", ["red", "green"]).close()
    browser = Browser(serve(url), at=host)
    calls = ("/experiments", "/experiments/secret%20name", "/metrics")
    for path in ("/", "/e/secret%20name", "/keys", *calls):
        answered = browser.get(path, Origin=host)  # as the browser sees it, it is that site
        assert answered.status_code == 403, path
        assert "secret name" not in answered.text and "set-cookie" not in answered.headers


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:9", "[::1]:8000", "127.0.0.2"])
def test_without_keys_this_machine_sees_the_page(url, serve, host):
    browser = Browser(serve(url))
    assert browser.get("/", Host=host).status_code == 200
    assert browser.get("/", Host="[bad").status_code == 403


# The secret.


def test_servers_with_one_secret_take_each_others_cookies(made, serve, monkeypatch):
    monkeypatch.setenv("DUELAY_SECRET", "a secret that both of them have")
    first, second = Browser(serve(made[0])), Browser(serve(made[0]))
    first.sign_in(made[1])
    cookie = f"{first.cookie.name}={first.cookie.value}"
    assert second.get("/e/one", Cookie=cookie).status_code == 200
    monkeypatch.delenv("DUELAY_SECRET")
    third = Browser(serve(made[0]))
    assert third.get("/e/one", Cookie=cookie).status_code == 303


def test_a_short_secret_is_refused(monkeypatch):
    monkeypatch.setenv("DUELAY_SECRET", "short")
    with pytest.raises(ValueError, match="DUELAY_SECRET"):
        Sessions()
