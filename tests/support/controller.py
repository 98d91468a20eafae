# SPDX-License-Identifier: Apache-2.0
"""A controller as a process of its own, to be killed in the middle of something.

    controller.py ADDRESS dump|bundle|greet

waits for the switch at ADDRESS and says a line on stdout when it is in the middle: of reading a
dump of the flows, of filling a bundle; or how many flows there are, when it has asked for that.
"""
import os
import signal
import subprocess
import sys
import time

if __name__ == '__main__':
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    __package__ = 'support'     # noqa: A001  (run as a script: the package is above)
    import support  # noqa: F401

from . import bundle as b, of13  # noqa: E402


def dump(conn):
    conn.send(of13.MULTIPART_REQUEST, b'\0\1\0\0\0\0\0\0' + of13.flow_request())
    msg = conn.recv(30)
    assert msg.type == of13.MULTIPART_REPLY and msg.body[3] == 1, 'more is to come'
    print('dumping', flush=True)
    time.sleep(60)


def bundle(conn):
    conn.send_raw(b.control(b.OPEN, 1))
    for n in range(1000):
        flow = of13.flow_mod(match=of13.match(eth_dst=n + 1), priority=777)
        conn.send_raw(b.add(of13.message(of13.FLOW_MOD, flow, n + 10), n + 10))
    conn.barrier()
    half = b.add(of13.message(of13.FLOW_MOD, of13.flow_mod(), 9), 9)
    conn.send_raw(half[:40])
    print('filling', flush=True)
    time.sleep(60)


def greet(conn):
    conn.features()
    print(conn.aggregate()['flow_count'], flush=True)
    time.sleep(60)


def main():
    """ADDRESS WHAT"""
    signal.alarm(120)           # whoever started it may be gone
    with of13.Listener(sys.argv[1]) as listener, listener.accept(30) as conn:
        {'dump': dump, 'bundle': bundle, 'greet': greet}[sys.argv[2]](conn)


class Process:
    """What it says first is `said`; leaving the block kills it."""

    def __init__(self, address, what):
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), address, what],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

    def __enter__(self):
        self.said = self.process.stdout.readline().decode().strip()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


if __name__ == '__main__':
    main()
