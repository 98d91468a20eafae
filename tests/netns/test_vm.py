# SPDX-License-Identifier: Apache-2.0
"""A virtual machine with packets: Debian's kernel under qemu, whose tap ofqos-libvirt makes a port (docs/how-to/cloud.md).  Promised rates
are measured inside, and changed while it runs."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import threading

import pytest

from support.libvirt import BANDWIDTH, domain, hook, interface
from support.load import comes_to
from support.topo import REPOSITORY, Switch, Topology, inside, sh
from support.udp import PAYLOAD

MBIT = 1_000_000
SHARE = PAYLOAD / (PAYLOAD + 42)
WHOLE = 1514
MACHINE = os.path.join(REPOSITORY, 'tests/testkernel/run')


class Machine:
    """At a tap that is there, and its host, who tells it what to do"""

    def __init__(self, topo):
        self.topo = topo

    def __enter__(self):
        sh('ip', '-n', self.topo.switch_ns, 'tuntap', 'add', 'vnet0', 'mode', 'tap', 'vnet_hdr')
        sh('ip', '-n', self.topo.switch_ns, 'link', 'set', 'vnet0', 'up')
        self.listeners = {port: self.listen(port) for port in (7000, 7001, 7002)}
        return self

    def listen(self, port):
        with inside(self.topo.host_ns(1)):
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(('10.0.0.1', port))
            sock.listen(4)
            sock.settimeout(420)
        return sock

    def start(self):
        self.process = subprocess.Popen(['ip', 'netns', 'exec', self.topo.switch_ns, MACHINE, '--timeout', '900', '--mem', '512', '--cpus', '1', '--tap', 'vnet0',
                                         '--', 'python3', '-S', os.path.join(REPOSITORY, 'tests/support/vmguest.py')], cwd=REPOSITORY, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        threading.Thread(target=self.end_early, daemon=True).start()
        try:
            self.control, _ = self.listeners[7000].accept()
        except OSError:
            self.process.terminate()
            said = self.process.communicate()[0]
            if self.process.returncode == 77:
                pytest.skip(said.strip().splitlines()[-1])
            raise AssertionError(f'the machine has not come: {said}') from None
        self.control.settimeout(300)
        self.lines = self.control.makefile('rw')

    def end_early(self):
        """Whoever waits for a machine that has ended need not wait"""
        self.process.wait()
        with contextlib.suppress(OSError):       # closed, as all is over
            self.listeners[7000].shutdown(socket.SHUT_RDWR)

    def do(self, what):
        self.lines.write(what + '\n')
        self.lines.flush()
        return json.loads(self.lines.readline())

    def __exit__(self, *_):
        for sock in self.listeners.values():
            sock.close()
        if hasattr(self, 'control'):
            self.lines.close()
            self.control.close()
        if hasattr(self, 'process'):
            self.process.send_signal(signal.SIGTERM)
            self.process.communicate(timeout=60)

    # ---- what goes between them

    def bulk(self, what, port, work):
        """A connection that the machine makes -> the longest frame inside"""
        def serve():
            sock, _ = self.listeners[port].accept()
            with sock:
                work(sock)
        thread = threading.Thread(target=serve)
        thread.start()
        longest = self.do(what)
        thread.join()
        return longest

    def rate_into(self, offered):
        """Mbit/s that are measured inside"""
        over = threading.Event()

        def send():
            with inside(self.topo.host_ns(1)):
                sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            with sock:
                while not over.wait(PAYLOAD * 8 / offered):
                    sock.sendto(bytes(PAYLOAD), ('10.0.0.7', 5001))
        thread = threading.Thread(target=send)
        thread.start()
        try:
            return self.do('count')
        finally:
            over.set()
            thread.join()


def drain(sock):
    while sock.recv(1 << 16):
        pass


@pytest.mark.long
def test_a_machine_with_packets(need):
    need('htb')
    with Topology(ports=1, ip=True) as topo, Switch(topo, '--leaf=none', '--map=then=normal') as switch, Machine(topo) as machine:
        assert hook(switch, 'started', domain(interface('vnet0', bandwidth=''))) == (0, '')
        machine.start()
        assert machine.do('driver') == 'virtio_net'
        # Super-packets go through whole, both ways, so no offload is lost.
        assert machine.bulk('take', 7001, lambda sock: sock.sendall(bytes(4 << 20))) > WHOLE
        assert machine.bulk('give', 7002, drain) > WHOLE
        for average, into in (("'500'", 4), ("'250'", 2)):               # kilobytes a second; the second while it runs
            xml = domain(interface('vnet0', bandwidth=BANDWIDTH.replace("'500'", average).replace("'1000'", average)))
            assert hook(switch, 'reconnect', xml) == (0, '')
            comes_to(lambda: {'into': machine.rate_into(8 * MBIT)}, {'into': into * SHARE}, 0.06)
        assert hook(switch, 'stopped', domain(interface('vnet0', bandwidth='')), more=('end', '-')) == (0, '')
        assert not [p for p in json.loads(switch.dpctl('--json', 'port-desc').stdout)['ports'] if p['name'] == 'vnet0']
        assert switch.alive()
