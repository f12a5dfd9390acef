"""A client of a service goes on in a process that has forked."""

import http.server
import json
import os
import threading

import pytest

from duelay.live import connect


class Ports(http.server.BaseHTTPRequestHandler):
    """Answers with the port of the caller, which is one for each connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = json.dumps({"experiments": [{"name": str(self.client_address[1])}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def url():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ports)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_that_forks_has_connections_of_its_own(url):
    reads, writes = os.pipe()
    with connect(url) as service:
        before = service.names()
        assert service.names() == before  # it keeps its connection
        if not (child := os.fork()):
            os.write(writes, json.dumps(service.names()).encode())
            os._exit(0)
        os.waitpid(child, 0)
        (port,) = json.loads(os.read(reads, 1000))
        assert port != before[0]
        assert service.names() == before
    os.close(reads)
    os.close(writes)
