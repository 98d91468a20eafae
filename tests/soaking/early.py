# SPDX-License-Identifier: Apache-2.0
"""A run that is ended before its time still tells what it saw.

The run goes on in a session of its own: a terminal sends Ctrl-C to every process of its foreground group, and the
switch, the generators and each `ip` would end before the run could ask them anything.
"""
import ctypes
import os
import signal

SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


class Early:
    """by: the name of the signal that asked for the end, or None.  A second signal ends the run at once."""

    def __init__(self):
        self.by = None
        for number in SIGNALS:
            signal.signal(number, self.ask)

    def ask(self, number, _):
        if self.by:
            raise KeyboardInterrupt
        self.by = signal.Signals(number).name
        # By the system's own call: the signal may have interrupted a print, which must not be entered twice.
        os.write(1, f'{self.by}: it stops here, and tells what it saw (once more: nothing is told)\n'.encode())


def apart(run):
    """run(Early()) -> exit status, in a session of its own; signals for this process are handed on to it"""
    ours = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)      # until each of the two knows what to do
    child = os.fork()
    if not child:
        os.setsid()
        early = Early()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != ours:
            early.by = 'the end of who started it'
        return run(early)
    for number in SIGNALS:
        signal.signal(number, lambda number, _: os.kill(child, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
