# SPDX-License-Identifier: Apache-2.0
"""What the operator is told of connections: a line in the log each, and in `dpctl status`."""
import struct

from support import of13
from support.status import connections, status
from support.topo import Switch, Topology, inside, sh
from support.wait import until


def of_controller(conn):
    return connections(status(conn))[0]


def test_why_a_controller_is_not_connected(tmp_path):
    address = f'unix:{tmp_path}/controller'
    with Topology(1) as topo, Switch(topo, address, 'tcp:127.0.0.1:1', '--max-backoff=0.2') as switch, \
            switch.connect() as conn:
        sh('ip', '-n', topo.switch_ns, 'link', 'set', 'lo', 'up')
        until(lambda: of_controller(conn).get('error') == 'No such file or directory', 'ENOENT')
        until(lambda: connections(status(conn))[1].get('error') == 'Connection refused', 'tcp:')
        with of13.Listener(address) as listener:
            controller = listener.accept()
            until(lambda: of_controller(conn)['state'] == 'open', 'connected')
            assert 'error' not in of_controller(conn)
            controller.close()
            until(lambda: 'error' in of_controller(conn) or listener.accept().close(), 'lost')
            with listener.accept() as old:          # one that refuses our version
                old.send(of13.ERROR, struct.pack('!HH', 0, 0))
        said = switch.output().splitlines()
        for line in (f'warning: conn: {address}: not connected: No such file or directory',
                     'warning: conn: tcp:127.0.0.1:1: not connected: Connection refused',
                     f'notice: conn: {address}: connected',
                     f'notice: conn: {address}: connection lost: the peer has closed the connection'):
            assert any(s.endswith(line) for s in said), (line, said)
        assert sum('Connection refused' in s for s in said) < 10, 'once is enough'


def test_why_a_peer_is_refused(tmp_path):
    with Topology(1) as topo, Switch(topo, 'ptcp:6653') as switch:
        sh('ip', '-n', topo.switch_ns, 'link', 'set', 'lo', 'up')

        def peer(first):
            with inside(topo.switch_ns):
                conn = of13.Conn('tcp:127.0.0.1:6653', hello=False)
            with conn:
                conn.send_raw(first)
                try:
                    while True:
                        conn.recv()
                except (of13.Closed, TimeoutError):
                    pass

        peer(of13.message(of13.HELLO, version=2))
        peer(of13.message(of13.BARRIER_REQUEST))
        peer(of13.message(of13.ERROR, struct.pack('!HH', 0, 0)))
        with inside(topo.switch_ns), of13.Conn('tcp:127.0.0.1:6653'):
            pass
        until(lambda: switch.output().count('connection lost') == 1, 'the end of the last one')
        said = switch.output()
        for why in (': this switch speaks OpenFlow 1.0 and 1.3', ': the first message must be',
                    ": the peer refuses the switch's hello", 'notice: conn: tcp:127.0.0.1:', ': connected'):
            assert why in said, (why, said)
        with switch.connect():      # a local one, such as dpctl's, is not worth a line
            pass
        assert 'unix:' not in switch.output()
