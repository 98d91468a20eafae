# SPDX-License-Identifier: Apache-2.0
"""An interactive shell in a terminal of its own, typed at as a person types."""
import os
import pty
import re
import select
import subprocess
import termios
import time


class Shell:
    """with Shell(['bash', '--norc', '-i'], setup) as shell: shell.line('dpctl stats-p\\t')"""

    def __init__(self, command, setup, env=None, patience=60):
        self.patience, self.text = patience, ''
        self.end, there = pty.openpty()
        termios.tcsetwinsize(there, (50, 160))
        self.process = subprocess.Popen(command, stdin=there, stdout=there, stderr=there,
                                        start_new_session=True, env=dict(os.environ, TERM='dumb',
                                                                         PS1='> ', **(env or {})))
        os.close(there)
        self.type(setup + '\recho rea"dy"\r')
        self.wait_for(r'^ready\r?$')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.end)

    def type(self, text):
        os.write(self.end, text.encode())

    def wait_for(self, pattern):
        """The match in what has come since the last one"""
        until = time.monotonic() + self.patience
        while True:
            found = re.search(pattern, self.text, re.M)
            if found:
                self.text = self.text[found.end():]
                return found
            left = until - time.monotonic()
            assert left > 0, f'no {pattern!r} in the terminal:\n{self.text}'
            if select.select([self.end], [], [], min(left, 1))[0]:
                self.text += os.read(self.end, 65536).decode(errors='replace')

    def line(self, keys):
        """What the line is after these keys, which may have tabs in them"""
        self.type(keys + '\x01echo LI"NE": \r')          # ^A: to the line's beginning
        return self.wait_for(r'^LINE: ([^\r\n]*?) ?\r?$')[1]
