# SPDX-License-Identifier: Apache-2.0
"""What a part of an experiment gets while it runs, and how everything ends."""
import contextlib
import signal
import subprocess
import time

from net import Failure


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP: everything is taken down, and the run ends."""


__all__ = ['Context', 'Failure', 'Interrupted', 'end', 'on_signals', 'process']


def on_signals():
    """From here on those signals raise Interrupted, once: those that come while it is cleaned up,
    and the same ones to the commands that clean up, mean nothing any more."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupted(number, _):
        for each in signals:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(signal.Signals(number).name)
    for each in signals:
        signal.signal(each, interrupted)


class Context:
    """p: the experiment's parameters.  quick: shorter times are asked for, as p has them."""

    def __init__(self, p, quick, say):
        self.p, self.quick, self.say = p, quick, say
        self.stack = contextlib.ExitStack()

    def enter(self, manager):
        """A context manager that is left when the part is over, in the opposite order."""
        return self.stack.enter_context(manager)

    def start(self, netns, *command, **kw):
        """A process in a namespace that is ended with the part."""
        return self.enter(process(netns, *command, **kw))

    @staticmethod
    def sleep_until(moment):
        """moment: of time.monotonic()"""
        time.sleep(max(0, moment - time.monotonic()))

    def __enter__(self):
        return self

    def __exit__(self, *what):
        return self.stack.__exit__(*what)


@contextlib.contextmanager
def process(netns, *command, **kw):
    """In a session of its own, so that a terminal's ^C doesn't end it before we do.  netns: None for
    the one that we are in"""
    within = ['ip', 'netns', 'exec', netns] if netns else []
    child = subprocess.Popen([*within, *command], start_new_session=True,
                             **{'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE,
                                'stderr': subprocess.STDOUT, 'text': True, **kw})
    try:
        yield child
    finally:
        end(child)


def end(child, patience=5):
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(patience)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    for pipe in child.stdin, child.stdout, child.stderr:
        if pipe:
            pipe.close()
