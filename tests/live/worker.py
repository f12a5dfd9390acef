"""A program whose processes ask and tell from several threads, and write down what they heard.

    python worker.py STORE FOLDER N_THREADS PATIENCE

It reads commands, `start NAME`, `kill NAME` and `stop NAME` (in good order), and says of each what
came of it. When its input ends, it kills all. Processes are forked: a new one is there at once.

Each thread has a file of its own in FOLDER, NAME-THREAD. A line is written there after a call has
returned and before the next one. Started again after a crash, a thread reads its file and goes on
where it was: it asks again with the key of the ask that it has not heard of, and tells again what
it had to tell.
"""

import logging
import os
import random
import signal
import sys
import threading
import time
import traceback
import zlib
from pathlib import Path

from sqlalchemy import event

from duelay.live import Experiment, StoreError

EXPERIMENTS = ("decide", "regret")  # each thread has one of them
LAG = 3  # duels that wait for their answer
AGAIN = 0.1  # of answers are told twice, and as many of another process' duels
SLOW = 0.03  # seconds, of a commit
LONGEST = 300.0  # seconds, for a process that has been told to stop


def converts(key):
    """Whether the duel of a key is answered; the same after a crash."""
    return zlib.crc32(key.encode()) % 10 < 6


def read_lines(file):
    """Return what is in a file of acknowledgements, a list of words for each line."""
    return [line.split() for line in Path(file).read_text().splitlines()]


class Thread:
    """A caller who remembers nothing but what is in its file."""

    def __init__(self, experiment, folder, name, number):
        self.experiment, self.name = experiment, f"{name}-{number}"
        self.neighbours = [folder / f"{other}-{number}" for other in "ab" if other != name]
        file = folder / self.name
        self.out = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        lines = read_lines(file)
        asked = {words[2]: words[1] for words in lines if words[0] == "asked"}
        told = {words[2] for words in lines if words[0] == "told"}
        self.n = len(asked)
        self.waiting = [id for id, key in asked.items() if converts(key) and id not in told]

    def write(self, *words):
        os.write(self.out, (" ".join(map(str, words)) + "\n").encode())

    def insist(self, call, *words, **more):
        return insist(call, *words, failed=lambda error: self.write("failed", error), **more)

    def step(self):
        """Ask, and tell what has waited long enough."""
        key = f"{self.name}-{self.n}"
        duel = self.insist(self.experiment.ask, unit=f"of {key}", key=key)
        self.write("asked", key, duel.id, duel.first, duel.second)
        self.n += 1
        if converts(key):
            self.waiting.append(duel.id)
        while len(self.waiting) > LAG:
            self.tell(self.waiting.pop(random.randrange(len(self.waiting))))
        if random.random() < AGAIN:
            self.meddle()

    def tell(self, id):
        for _ in range(1 + (random.random() < AGAIN)):
            self.write("told", self.insist(self.experiment.tell, id), id)

    def meddle(self):
        """Tell the latest duel of another process, perhaps at the same time as that one does."""
        for file in self.neighbours:
            lines = read_lines(file) if file.exists() else []
            for words in lines[-1:]:
                if words[0] == "asked" and len(words) == 5 and converts(words[1]):
                    result = self.insist(self.experiment.tell, words[2])
                    self.write("meddled", result, words[2])

    def run(self, stop):
        try:
            self.step()  # at least once: the ask that was not heard of before a crash
            while not stop.is_set():
                self.step()
            for id in self.waiting:
                self.tell(id)
        except BaseException:
            traceback.print_exc()
            os._exit(1)


def insist(call, *words, failed=lambda error: None, **more):
    """Call until the store answers."""
    while True:
        try:
            return call(*words, **more)
        except StoreError as error:
            failed(error)
            time.sleep(0.05)


def be_slow(connection):
    """Be a disk that takes its time, so that a kill is likely to come before a commit is done."""
    if random.random() < 0.5:
        time.sleep(random.uniform(0.0, SLOW))


def work(store, folder, n_threads, patience, name):
    """Be a process, until a signal says that it is enough."""
    logging.getLogger("psycopg").addHandler(logging.NullHandler())  # connections that broke
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # also one that came before
    opened = [
        insist(Experiment.open, store, each, patience=float(patience)) for each in EXPERIMENTS
    ]
    for experiment in opened:
        event.listen(experiment.store.engine, "commit", be_slow)
    callers = [Thread(opened[number % len(opened)], Path(folder), name, number)
               for number in range(int(n_threads))]  # fmt: skip
    threads = [threading.Thread(target=caller.run, args=(stop,)) for caller in callers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def end(pid, how):
    """End a process, and return its code; one that does not stop is killed."""
    os.kill(pid, how)
    until = time.monotonic() + LONGEST
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


def main(store, folder, n_threads, patience):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # until a process can take it
    running = {}
    for line in sys.stdin:
        command, name = line.split()
        if command == "start":
            running[name] = os.fork()
            if running[name] == 0:
                work(store, folder, n_threads, patience, name)
                os._exit(0)
            print("started", flush=True)
        else:
            how = signal.SIGKILL if command == "kill" else signal.SIGTERM
            print(end(running.pop(name), how), flush=True)
    for pid in running.values():
        end(pid, signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
