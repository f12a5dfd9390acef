"""A server that webhooks are sent to, for tests."""

import hashlib
import hmac
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver:
    """Keeps what it is sent; `answers` are the next statuses, None for no answer at all."""

    def __init__(self):
        self.received, self.answers = [], []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.received.append((dict(self.headers), body))
                status = outer.answers.pop(0) if outer.answers else 204
                if status is None:
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Length", "0")
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"

    @property
    def told(self):
        """What it was told: the kinds of events, and whom they are about."""
        return [(each["event"], each["about"]) for each in self.bodies]

    @property
    def bodies(self):
        return [json.loads(body) for _, body in self.received]

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def is_signed(secret, header, body, now, tolerance=300):
    """Whether a message is from who knows the secret, and of now: as the documentation has it."""
    parts = dict(part.split("=", 1) for part in header.split(","))
    signed = parts["t"].encode() + b"." + body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, parts["v1"]) and abs(now - int(parts["t"])) <= tolerance
