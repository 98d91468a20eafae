# SPDX-License-Identifier: Apache-2.0
"""--socket, a service's own socket beside what the configuration file says; the shortest file."""
import os
import signal
import subprocess

from support import of13
from support.topo import Switch, Topology, binary
from support.wait import until


def test_beside_the_files_own(tmp_path):
    conf, own, other = tmp_path / 'br0.conf', tmp_path / 'own', tmp_path / 'other'
    conf.write_text(f'interfaces = p1\nlisten = punix:{other}\n')
    with Topology(1) as topo, \
            Switch(topo, f'--config={conf}', f'--socket={own}', interfaces=[], listen=False,
                   wait=False) as switch:
        until(lambda: os.path.exists(own) and os.path.exists(other), 'both sockets')
        for path in own, other:
            with of13.Conn(f'unix:{path}') as conn:
                conn.features()
        conf.write_text('interfaces = p1\n')             # a reload leaves the service's socket
        switch.process.send_signal(signal.SIGHUP)
        until(lambda: not os.path.exists(other), 'the reload')
        with of13.Conn(f'unix:{own}') as conn:
            conn.features()


def test_a_file_for_it_needs_no_connection(tmp_path):
    conf = tmp_path / 'br0.conf'
    conf.write_text('interfaces = lo\n')
    done = subprocess.run([binary('datapath/ofdatapath'), f'--check={conf}'], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert done.returncode == 0, done.stdout


def test_a_map_without_rules(tmp_path):
    """Where packets go is enough; a map that says nothing is a mistake."""
    conf = tmp_path / 'br0.conf'
    for words, status in ('then=normal', 0), ('then=normal queue=10,dscp=ef', 0), ('table=2', 1):
        conf.write_text(f'interfaces = lo\nmap = {words}\n')
        done = subprocess.run([binary('datapath/ofdatapath'), f'--check={conf}'], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        assert done.returncode == status, done.stdout
        assert ('br0.conf:2: map has neither a rule' in done.stdout) == (status == 1)
