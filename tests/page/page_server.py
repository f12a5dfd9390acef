"""A small server of samples under the page's own policy."""

import contextlib
import http.server
import threading
import urllib.parse

from duelay.page import render
from page import sample

VIEWER = render.Viewer(may_change=True, may_keys=True, csrf="token", signed_in="dashboard")


def page_at(path):
    """The page at a path."""
    name = urllib.parse.unquote(path.strip("/"))
    if name == "keys":
        return render.keys_page([], VIEWER, made="duelay_0f")
    if name == "error":
        return render.error_page(503, "The kernels are being compiled.", VIEWER, again=60)
    if name.startswith("report/"):
        view, checked = sample.SAMPLES[name.removeprefix("report/")]()
        return render.experiment_page(view, checked, render.Viewer(is_static=True))
    return render.experiment_page(*sample.SAMPLES[name](), VIEWER)


@contextlib.contextmanager
def showing():
    """The address of a server that shows samples, which do not move."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            at = urllib.parse.urlsplit(self.path)
            if self.headers.get("HX-Request") == "true":
                self.send_response(204)
                self.end_headers()
                return
            if at.path == "/favicon.ico":
                self.send_error(404)
                return
            if at.path.startswith("/static/"):
                asset = render.STATIC[at.path.rpartition("/")[2]]
                content, kind = asset.content, asset.content_type
            else:
                content = page_at(at.path).encode()
                kind = "text/html; charset=utf-8"
            self.send_response(200)
            self.send_header("Content-Type", kind)
            if not at.path.startswith("/report/"):
                self.send_header("Content-Security-Policy", render.POLICY)
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204)  # the browser stays where it is
            self.end_headers()

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
