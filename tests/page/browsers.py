"""A real Chromium and a real server, for tests of the page.

The browser is Debian's, or another one: `DUELAY_CHROMIUM` says where. `DUELAY_SHOTS` is a folder
for pictures of what was seen, for people to look at.
"""

import contextlib
import os
import shutil
import socket
import threading
import time
from pathlib import Path

import uvicorn

from duelay.service import make_app

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
LONG = 300_000  # milliseconds that something may take on a busy machine
NAMES = ("chromium", "chromium-browser", "google-chrome")
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
# Shifts are kept from the start: an observer that comes later is told of few.
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`);
});
window.shifts = [];
try {
  const keep = (entries) => {
    for (const entry of entries) if (!entry.hadRecentInput) window.shifts.push(entry.value);
  };
  const observer = new PerformanceObserver((list) => keep(list.getEntries()));
  observer.observe({ type: "layout-shift", buffered: true });
  window.takeShifts = () => keep(observer.takeRecords());
} catch (_) {}
"""


class NoBrowserError(RuntimeError):
    """There is no browser to test with."""


def find_chromium():
    """Return the path of a Chromium."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        raise NoBrowserError("playwright is not installed: pip install 'duelay[dev]'") from None
    told = os.environ.get("DUELAY_CHROMIUM")
    found = told or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None or not Path(found).exists():
        raise NoBrowserError(f"there is no {told or ' or '.join(NAMES)}: try `make browser`")
    return found


@contextlib.contextmanager
def chromium():
    """Give a browser, which ends with the block.

    While it runs, nothing else in its thread may run an event loop.
    """
    path = find_chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--disable-gpu", "--hide-scrollbars"],
            timeout=LONG,
        )
        yield browser
        browser.close()


class Served:
    """A server of a store in a thread, which can be stopped and started at the same port."""

    def __init__(self, store, **said):
        self._store, self._said = store, said
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        app = make_app(self._store, **self._said)
        config = uvicorn.Config(
            app, port=self.port, log_config=None, access_log=False, timeout_graceful_shutdown=300
        )
        self.app, self._server = app, uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, name="served")
        self._thread.start()
        until = time.monotonic() + 300.0  # it may have to compile
        while not (self._server.started and app.state.context.warm.done()):
            if not self._thread.is_alive() or time.monotonic() > until:
                self.stop()
                raise AssertionError("it does not start")
            time.sleep(0.01)
        return self

    def stop(self):
        self._server.should_exit = True
        self._thread.join()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self._thread.is_alive():
            self.stop()


def check_looks(window, name, rules=()):
    """By day and night, wide and narrow: return what does not fit, and what axe-core finds."""
    found = {}
    for size in (DESKTOP, PHONE):
        window.page.set_viewport_size(size)
        for scheme in ("light", "dark"):
            window.page.emulate_media(color_scheme=scheme)
            window.settle()
            place = f"{name}-{size['width']}-{scheme}"
            window.keep(place)
            wrong = window.fits()
            if scheme == "light":
                wrong += window.faults(*rules)
            elif size is DESKTOP and not rules:
                wrong += window.faults("color-contrast")
            if wrong:
                found[place] = wrong
    window.page.set_viewport_size(DESKTOP)
    window.page.emulate_media(color_scheme="light")
    return found


class Window:
    """A tab of a browser: it keeps what went wrong, and what came over the wire."""

    def __init__(self, browser, url="", **said):
        said = {"viewport": DESKTOP, "color_scheme": "light", "reduced_motion": "reduce", **said}
        self.context = browser.new_context(base_url=url or None, **said)
        self.context.set_default_timeout(LONG)
        self.context.add_init_script(WATCH)
        self.page = self.context.new_page()
        self.troubles = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", self._close)

    def _hear(self, message):
        if message.type in ("error", "warning"):
            self.troubles.append(f"{message.type}: {message.text}")

    def _close(self, dialog):
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def take_troubles(self):
        """Return what went wrong until now, of scripts and of the security policy."""
        found = [*self.troubles, *self.page.evaluate("window.violations ?? []")]
        self.troubles.clear()
        return found

    def sign_in(self, key):
        self.page.goto("/login")
        self.page.fill("#key", key)
        self.page.click("main button.main")
        self.page.wait_for_url(lambda url: "/login" not in url)

    def settle(self):
        """Wait until frames were drawn since the window changed: charts follow it a frame later.

        On a busy machine a frame takes as long as it takes.
        """
        self.page.evaluate(
            """async () => {
              for (let i = 0; i < 4; i += 1) await new Promise(requestAnimationFrame);
              await new Promise((done) => setTimeout(done, 50));
            }"""
        )

    def fits(self):
        """Whether nothing is wider than the screen; return what is."""
        return self.page.evaluate(
            """() => {
              const wide = document.documentElement.clientWidth;
              if (document.documentElement.scrollWidth <= wide) return [];
              const found = [...document.querySelectorAll("body *")].filter(
                (node) => node.getBoundingClientRect().right > wide + 1
                  && !node.closest(".scroll, pre, .hidden"));
              return [`${document.documentElement.scrollWidth} > ${wide}`,
                ...found.slice(0, 5).map((node) => node.outerHTML.slice(0, 120))];
            }"""
        )

    def faults(self, *rules):
        """Return what axe-core finds that is serious or critical, of some rules or of all."""
        if not self.page.evaluate("typeof axe !== 'undefined'"):
            self.page.evaluate(AXE.read_text("utf-8"))  # not subject to the policy of the page
        only = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
        found = self.page.evaluate(
            "(only) => axe.run({...only, resultTypes: ['violations']})", only
        )["violations"]  # fmt: skip
        return [
            f"{one['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
            for one in found
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"][:3]
        ]

    def keep(self, name):
        """Keep a picture, where somebody wants to look at it."""
        if folder := os.environ.get("DUELAY_SHOTS"):
            path = Path(folder) / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=path, full_page=True)

    def first_view(self, path):
        """Open a path as somebody who has never been there; return kilobytes, and seconds."""
        wire = self.context.new_cdp_session(self.page)
        wire.send("Network.enable")
        wire.send("Network.setCacheDisabled", {"cacheDisabled": True})
        sizes = []
        wire.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
        self.page.goto(path, wait_until="load")
        self.page.locator(".plot .picture").first.wait_for()
        self.page.wait_for_timeout(100)  # the browser is told of the icon last
        seconds = self.page.evaluate(
            "performance.getEntriesByType('navigation')[0].loadEventEnd / 1000"
        )
        return sum(sizes) / 1000, seconds

    def shift(self):
        """Return how far things have jumped since the last call, in all frames that were drawn."""
        self.settle()
        return self.page.evaluate(
            """() => {
              window.takeShifts?.();
              return window.shifts.splice(0).reduce((sum, each) => sum + each, 0);
            }"""
        )

    def wait_for_update(self, do=lambda: None):
        """Do something, and wait until the page shows what is new."""
        before = self.page.input_value("#seen")
        do()
        self.page.wait_for_function(
            "(v) => document.getElementById('seen').value !== v", arg=before
        )
        self.settle()

    def wait_for_duels(self, n):
        """Wait until the page shows so many duels."""
        self.page.wait_for_function(
            "(n) => document.querySelector('#fact-duels dd').textContent.replaceAll(',', '') == n",
            arg=str(n),
        )

    def close(self):
        self.context.close()
