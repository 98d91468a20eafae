# SPDX-License-Identifier: Apache-2.0
"""One line that tells what is going on and how long it will take; a line now and then where there
is no terminal."""
import shutil
import sys
import threading
import time

EVERY = 15.0          # seconds between lines without a terminal


def clock(seconds):
    minutes, seconds = divmod(round(max(0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f'{hours}:{minutes:02}:{seconds:02}' if hours else f'{minutes}:{seconds:02}'


class Progress:
    """begin(what, seconds) ... end(): what is expected to take so long.  The time left is scaled
    by what the parts that are done really took."""

    def __init__(self, seconds):
        self.left, self.expected, self.took = seconds, 0.0, 0.0
        self.live = sys.stderr.isatty()
        self.what = self.more = ''
        self.now = self.started = self.printed = 0.0
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.ticker = threading.Thread(target=self.tick, daemon=True)

    def __enter__(self):
        self.ticker.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.ticker.join()
        self.clear()

    def tick(self):
        while not self.over.wait(0.5):
            with self.lock:
                if self.live or self.what and time.monotonic() - self.printed > EVERY:
                    self.show()

    def begin(self, what, seconds):
        with self.lock:
            self.what, self.more, self.now, self.started = what, '', seconds, time.monotonic()
            self.show()

    def say(self, more):
        with self.lock:
            self.more = more
            if self.live:
                self.show()

    def end(self):
        with self.lock:
            self.expected += self.now
            self.took += time.monotonic() - self.started
            self.left = max(0, self.left - self.now)
            self.what = ''

    def remaining(self):
        scale = self.took / self.expected if self.expected > 5 else 1.0
        gone = time.monotonic() - self.started
        return max(0, self.now * scale - gone) + max(0, self.left - self.now) * scale

    def show(self):
        if not self.what:
            return
        self.printed = time.monotonic()
        text = f'[{clock(self.remaining())} left] {self.what}'
        if self.more:
            text += ': ' + self.more
        if self.live:
            text = '\r\033[K' + text[:shutil.get_terminal_size().columns - 1]
        print(text, end='' if self.live else '\n', file=sys.stderr, flush=True)

    def clear(self):
        if self.live:
            print('\r\033[K', end='', file=sys.stderr, flush=True)

    def note(self, text):
        """A line that stays"""
        with self.lock:
            self.clear()
            print(text, flush=True)
