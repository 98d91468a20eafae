# SPDX-License-Identifier: Apache-2.0
"""ofprotocol: controllers and whoever asks, relayed to the datapath; the options that both programs
share."""
import contextlib
import os
import re
import signal
import struct
import subprocess
import time

import pytest

from support import of13
from support.of13 import apply_actions, output
from support.status import status
from support.topo import Switch, binary
from support.wait import until

PROBE = 0.5                                          # seconds


class Relay:
    """ofprotocol in front of a switch; ends by SIGTERM and must leave nothing behind"""

    def __init__(self, directory, datapath, controllers, *options):
        self.listen = f'{directory}/listen'
        self.log = open(f'{directory}/ofprotocol.log', 'w+')
        self.process = subprocess.Popen(
            [binary('utils/ofprotocol/ofprotocol'), datapath, ','.join(controllers),
             f'--listen=punix:{self.listen}', '--max-backoff=0.2', *options],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def connect(self):
        until(lambda: os.path.exists(self.listen), 'ofprotocol listens')
        return of13.Conn('unix:' + self.listen, timeout=60)

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            status_ = self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        said = self.said()
        self.log.close()
        assert status_ == 0 and not re.search('Sanitizer|runtime error:', said), said
        assert not os.path.exists(self.listen)


@pytest.fixture
def relayed(four_ports, tmp_path):
    """relayed(N, OPTION...) -> relay, N listening controllers, a connection to the switch itself"""
    with contextlib.ExitStack() as stack:
        def start(n, *options):
            addresses = [f'unix:{tmp_path}/c{i}' for i in range(n)]
            listeners = [stack.enter_context(of13.Listener(a)) for a in addresses]
            switch = stack.enter_context(Switch(four_ports))
            relay = stack.enter_context(Relay(tmp_path, switch.address, addresses, *options))
            return relay, listeners, stack.enter_context(switch.connect())
        yield start


def connected(conn):
    return status(conn)['remote.is-connected']


def test_each_controller_has_a_connection_of_its_own(relayed):
    relay, (first, second), own = relayed(2)
    with first.accept() as a, second.accept() as b:
        until(lambda: connected(own) == 'true', 'the datapath knows')
        assert a.features()['datapath_id'] == 1
        a.role(of13.ROLE_MASTER, 1)
        with pytest.raises(of13.OfError) as e:
            b.role(of13.ROLE_MASTER, 0)                 # an older generation: stale
        assert (e.value.type, e.value.code) == (of13.ET_ROLE_REQUEST_FAILED, of13.RRFC_STALE)
        a.flow(apply_actions(output(2)))
        assert len(b.flows()) == 1
        with relay.connect() as c:                      # who asks beside the controllers
            assert len(c.flows()) == 1
    until(lambda: connected(own) == 'false', 'the datapath knows that they have gone')
    with first.accept() as a:                           # again and again
        assert a.features()['datapath_id'] == 1
        until(lambda: connected(own) == 'true', 'the datapath knows that one is back')


def test_fail_open_is_told(relayed):
    relay, (listener,), own = relayed(1, '--fail=open')
    with listener.accept():
        until(lambda: status(own)['standalone'] == 'false', 'a controller is there')
    until(lambda: status(own)['standalone'] == 'true', 'none is')


def test_large_dumps_and_a_peer_that_does_not_read(relayed):
    """What somebody doesn't read waits where it is; others don't notice."""
    relay, (listener,), own = relayed(1, '--inactivity-probe=0')
    for i in range(3000):
        own.send(of13.FLOW_MOD, of13.flow_mod(match=of13.match(in_port=1 + i), instructions=[
            apply_actions(output(2))]))
    own.barrier()
    with listener.accept(10) as slow, relay.connect() as other:
        for _ in range(200):                            # some 60 MB of replies
            slow.send(of13.MULTIPART_REQUEST,
                      struct.pack('!HH4x', of13.MP_FLOW, 0) + of13.flow_request())
        for _ in range(3):
            assert len(other.flows()) == 3000
        with open(f'/proc/{relay.process.pid}/status') as f:
            before = f.read()
        rss = int(re.search(r'VmRSS:\s+(\d+) kB', before)[1])
        assert len(other.flows()) == 3000
        with open(f'/proc/{relay.process.pid}/status') as f:
            assert int(re.search(r'VmRSS:\s+(\d+) kB', f.read())[1]) < rss + 4096
        jiffies = cpu_time(relay.process.pid)
        time.sleep(1)
        assert cpu_time(relay.process.pid) - jiffies < 0.5, 'it loops'


def cpu_time(pid):
    with open(f'/proc/{pid}/stat') as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def test_a_silent_controller_is_given_up(relayed):
    relay, (listener,), own = relayed(1, f'--inactivity-probe={PROBE}')
    with listener.accept() as c:
        messages = []
        with pytest.raises(of13.Closed):
            while True:                                 # reads, and answers nothing
                data = c.sock.recv(4096)
                if not data:
                    raise of13.Closed
                messages.append(data)
        assert any(m[1] == of13.ECHO_REQUEST for m in messages)
    with listener.accept() as c:                        # one that answers stays
        deadline = time.monotonic() + 6 * PROBE
        while time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                c.recv(0.1)
        assert c.features()['datapath_id'] == 1
        # the datapath has seen none of the answers
        assert not [m for m in c.inbox if m.type == of13.ERROR]
    assert 'no answer to a probe' in relay.said()


@pytest.mark.parametrize('data', [bytes(8), b'\x04\x00\x00\x07\0\0\0\1'])
def test_what_is_no_openflow(relayed, data):
    relay, (listener,), own = relayed(1)
    listener.sock.settimeout(10)
    sock, _ = listener.sock.accept()
    with sock:
        sock.sendall(data)
        sock.settimeout(20)
        while sock.recv(4096):
            pass
    with listener.accept() as c:
        assert c.features()['datapath_id'] == 1


def test_messages_in_pieces(relayed):
    relay, (listener,), own = relayed(1, f'--inactivity-probe={PROBE}')
    with listener.accept() as c:
        for _ in range(3):
            request = of13.message(of13.ECHO_REQUEST, b'x' * 3000, xid=77)
            c.send_raw(request[:5])
            time.sleep(0.05)
            c.send_raw(request[5:1000])
            time.sleep(0.05)
            c.send_raw(request[1000:])
            assert c.wait(77, 10).body == b'x' * 3000


def test_the_datapath_comes_later_and_again(four_ports, tmp_path):
    address = f'unix:{tmp_path}/c'
    with of13.Listener(address) as listener, Switch(four_ports) as switch:
        switch.stop()
        with Relay(tmp_path, switch.address, [address]) as relay:
            until(lambda: 'trying again' in relay.said(), 'it tries')
            for _ in range(2):
                switch.start()
                with listener.accept(20) as c:
                    assert c.features()['datapath_id'] == 1
                    switch.stop()
                    with pytest.raises((of13.Closed, TimeoutError)):
                        c.recv(10)
            switch.start()


WRONG = {
    'no address': ([], 'address'),
    'an option': (['unix:/x', '--nothing'], 'unrecognized'),
    '--fail': (['unix:/x', '--fail=maybe'], 'closed'),
    '--inactivity-probe': (['unix:/x', '--inactivity-probe=x'], '0 for never'),
    'a bad controller': (['unix:/x', 'tcp:'], 'tcp:'),
    '--listen': (['unix:/x', '--listen=punix:/no/such/place'], '/no/such/place'),
}


@pytest.mark.parametrize('what', WRONG)
def test_what_is_wrong_is_said(what):
    args, said = WRONG[what]
    done = subprocess.run([binary('utils/ofprotocol/ofprotocol'), *args], stderr=subprocess.PIPE,
                          text=True, timeout=60)
    assert done.returncode == 1 and said in done.stderr, done


def test_old_options_are_taken(four_ports, tmp_path):
    with Switch(four_ports) as switch, Relay(
            tmp_path, switch.address, [], '-v', '--verbose=ANY:console:err', '--max-idle=5',
            '--out-of-band', '--no-stp', '--rate-limit', '--burst-limit=9', '--no-resolv-conf'
            ) as relay, relay.connect() as c:
        assert c.features()['datapath_id'] == 1


# ------------------------------------------------------------------- what both programs share

@pytest.mark.parametrize('program', ['ofdatapath', 'ofprotocol'])
def test_in_the_background(four_ports, tmp_path, program):
    pidfile, log, path = (f'{tmp_path}/{name}' for name in ('pid', 'log', 'sock'))
    command = ['ip', 'netns', 'exec', four_ports.switch_ns]
    if program == 'ofdatapath':
        command += [binary('datapath/ofdatapath'), '-i', 'p1', '-i', 'p2', f'punix:{path}', '-v',
                    '-d', '000000000007', '--no-local-port', '--mfr-desc=m', '--dp_desc=d']
    else:
        command += [binary('utils/ofprotocol/ofprotocol'), f'unix:{tmp_path}/none',
                    f'--listen=punix:{path}']
    command += ['--detach', f'--pidfile={pidfile}', f'--log-file={log}']
    subprocess.run(command, check=True, timeout=60, stdin=subprocess.DEVNULL)
    assert os.path.exists(path), 'it is ready when the first process ends'
    with open(pidfile) as f:
        pid = int(f.read())
    try:
        with open(f'/proc/{pid}/comm') as f:
            assert f.read().strip() == program
        again = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60,
                               stdin=subprocess.DEVNULL)
        assert again.returncode == 1 and '--force' in again.stderr
        if program == 'ofdatapath':
            with of13.Conn(f'unix:{path}') as c:
                assert len(c.ports()) == 2
                assert (c.desc()['mfr_desc'], c.desc()['dp_desc']) == ('m', 'd')
    finally:
        os.kill(pid, signal.SIGTERM)
        until(lambda: not os.path.exists(pidfile), 'it ends and removes its files')
    assert not os.path.exists(path)
    with open(log) as f:
        assert not re.search('Sanitizer|runtime error:', f.read())
