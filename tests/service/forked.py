"""A program that forks servers: a new one is there at once, which importing would not let it be.

    python forked.py STORE

It reads commands, `start PORT`, `kill PORT` and `stop PORT` (in good order), and says of each what
came of it. When its input ends, it kills all. Commits are slow, so that a kill comes before some.
"""

import os
import signal
import sys

from sqlalchemy import Engine, event

from duelay.service import serve
from live.worker import be_slow


def main(store):
    running = {}
    for line in sys.stdin:
        command, port = line.split()
        if command == "start":
            running[port] = os.fork()
            if running[port] == 0:
                event.listen(Engine, "commit", be_slow)
                serve(store, port=int(port), log_level="ERROR")
                os._exit(0)
            print("started", flush=True)
        else:
            os.kill(running[port], signal.SIGKILL if command == "kill" else signal.SIGTERM)
            _, status = os.waitpid(running.pop(port), 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
    for pid in running.values():
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
