# SPDX-License-Identifier: Apache-2.0
"""A topology of several switches in one namespace, with links of their own."""
import contextlib
import signal

from .topo import Topology, sh


class Several(Topology):
    """build() makes links and switches when the block is entered; what is on `stack` ends first."""

    def __init__(self, **words):
        super().__init__(**words)
        self.stack = contextlib.ExitStack()
        self.switches = {}

    def build(self):
        raise NotImplementedError

    def __enter__(self):
        super().__enter__()
        try:
            self.build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.stack.close()
        finally:
            super().__exit__()

    def link(self, a, b):
        """A pair of interfaces in the switches' namespace, both up"""
        sh('ip', '-n', self.switch_ns, 'link', 'add', a, 'type', 'veth', 'peer', 'name', b)
        for end in a, b:
            sh('ip', '-n', self.switch_ns, 'link', 'set', end, 'up')

    def restart(self, n, signum=signal.SIGTERM):
        """Another daemon takes its place"""
        old = self.switches[n]
        old.process.send_signal(signum)
        old.process.wait(60)
        old.log.close()
        old.start()


def around(n, count):
    """The interfaces of switch n in a ring of links wNa-wNb: its host's, to the next, to the one before"""
    return [f'p{n}', f'w{n}a', f'w{(n - 2) % count + 1}b']
