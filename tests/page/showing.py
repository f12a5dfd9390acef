"""A small server of samples under the page's own policy."""

import contextlib
import http.server
import threading
import urllib.parse
from dataclasses import replace

from duelay.page import render
from page import sample

MOVES = "/e/checkout%20button"  # the one that moves
VIEWER = render.Viewer(may_change=True, may_keys=True, csrf="token", signed_in="dashboard")


class Stage:
    """What the server shows: it moves with every part that is fetched, and may be cut off."""

    def __init__(self):
        self.fetched = []  # the queries
        self.is_cut = False

    def page(self, path, query, is_part):
        """The page at a path, or its part."""
        name = urllib.parse.unquote(path.strip("/"))
        if name == "list":
            return render.list_page(sample.listed(), VIEWER)
        if name == "pair":
            view = sample.nasty()[0]
            return render.pair_page(view, sample.pair(view), VIEWER)
        if name == "log":
            return render.log_page(sample.nasty()[0], sample.duels(), {"arm": "1"}, "88", VIEWER)
        if name == "keys":
            return render.keys_page([], VIEWER, made="duelay_0f")
        if name == "login":
            return render.login_page("This key is not good.")
        if name == "error":
            return render.error_page(503, "The kernels are being compiled.", VIEWER, again=60)
        if name.startswith("report/"):
            view, checked = sample.SAMPLES[name.removeprefix("report/")]()
            return render.experiment_page(view, checked, render.Viewer(is_static=True))
        if name != "e/checkout button":
            return render.experiment_page(*sample.SAMPLES[name](), VIEWER)
        view, checked = sample.busy()
        if not is_part:
            return render.experiment_page(view, checked, VIEWER)
        self.fetched.append(query)
        n = len(self.fetched)
        view = replace(
            view,
            duels=9000 + n,
            version=f"v-{n + 1}",
            headline=f"moved {n} times",
            evidence=sample.evidence(view.arms, n=96 + n),
            events=sample.events("declared", "joined"),
        )
        return render.experiment_part(view, checked, VIEWER)


@contextlib.contextmanager
def showing(stage):
    """The address of a server that shows a stage."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            at = urllib.parse.urlsplit(self.path)
            is_part = self.headers.get("HX-Request") == "true"
            if stage.is_cut and is_part:
                self.close_connection = True
                return
            if is_part and at.path != MOVES:
                self.send_response(204)
                self.end_headers()
                return
            if at.path.startswith("/static/"):
                asset = render.STATIC[at.path.rpartition("/")[2]]
                content, kind = asset.content, asset.content_type
            else:
                content = stage.page(at.path, at.query, is_part).encode()
                kind = "text/html; charset=utf-8"
            self.send_response(200)
            self.send_header("Content-Type", kind)
            if not at.path.startswith("/report/"):
                self.send_header("Content-Security-Policy", render.POLICY)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
