# SPDX-License-Identifier: Apache-2.0
"""TLS for the control channel: both ends of it, and everything that is refused."""
import contextlib
import json
import os
import re
import select
import shutil
import socket
import ssl
import struct
import subprocess
import time
import warnings

import pytest

from support import of13, pki
from support.of13 import apply_actions, flow_mod, match, output
from support.topo import Switch, Topology, binary, dpctl, inside
from support.wait import until
from test_ofprotocol import Relay

TLS1_1, TLS1_2, TLS1_3 = (ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
PORT = 6653
DEADLINE = 20


class Pki:
    """Who plays: a CA that both sides trust, and others."""

    def __init__(self, directory):
        self.directory = directory
        self.authority = pki.Authority(directory, 'ours')
        foreign = pki.Authority(directory, 'foreign')
        self.switch = self.authority.identity('switch')
        self.controller = self.authority.identity('controller')
        self.expired = self.authority.identity('expired', days=-1)
        self.foreign = foreign.identity('stranger').trusting(self.authority.ca)
        self.foreign_ca = foreign.ca


@pytest.fixture(scope='module')
def who(tmp_path_factory):
    if 'no TLS' in dpctl('--ca-cert=x', 'tls:127.0.0.1', 'features', check=False).stderr:
        pytest.skip('this build has no TLS')
    return Pki(tmp_path_factory.mktemp('pki'))


@pytest.fixture(scope='module')
def net():
    with Topology(2) as t:
        yield t


@pytest.fixture
def switch(net, who):
    """It listens at tls:127.0.0.1 too."""
    with Switch(net, *who.switch.options(), 'ptls:') as s:
        yield s


def tls_conn(net, context, port=PORT, hello=True, timeout=DEADLINE):
    with inside(net.switch_ns):
        plain = socket.create_connection(('127.0.0.1', port), timeout)
    try:
        return of13.Conn(context.wrap_socket(plain), hello=hello, timeout=timeout)
    except BaseException:
        plain.close()
        raise


def run_dpctl(net, *args, check=True):
    """In the switch's namespace"""
    with inside(net.switch_ns):
        return dpctl(*args, check=check)


def counter(switch, name='channel.tls_failed'):
    return json.loads(switch.dpctl('--json', 'counters').stdout)[name]


def says(switch, line):
    until(lambda: re.search(line, switch.output()), f'{line} on stderr')


@pytest.fixture
def witness(switch):
    """Another connection, which must go on working."""
    with switch.connect() as conn:
        yield conn
        conn.barrier()
    assert switch.alive()


# ------------------------------------------------------------------------------------ it works

@pytest.mark.parametrize('address', ['tls:127.0.0.1', f'ssl:localhost:{PORT}'])
def test_dpctl(switch, net, who, address):
    text = run_dpctl(net, *who.controller.options(), address, 'features').stdout
    assert text == switch.dpctl('features').stdout
    done = run_dpctl(net, *who.controller.options(), '--json', address, 'port-desc')
    assert json.loads(done.stdout)


@pytest.mark.parametrize('version', [TLS1_2, TLS1_3])
def test_a_controller_that_connects(switch, net, who, version):
    with tls_conn(net, who.controller.context(version=version)) as conn:
        assert conn.sock.version() == {TLS1_2: 'TLSv1.2', TLS1_3: 'TLSv1.3'}[version]
        assert not conn.sock.session_reused
        conn.flow(apply_actions(output(2)), match=match(in_port=1))
        conn.expect_error(of13.ET_BAD_REQUEST, 1, 99) # OFPBRC_BAD_TYPE
    with switch.connect() as conn:
        assert len(conn.flows()) == 1
    assert counter(switch) == 0


def test_many_messages_and_a_large_dump(switch, net, who):
    """Many records in one direction, then in the other; more than the sockets hold."""
    n = 10000
    with tls_conn(net, who.controller.context(), timeout=60) as conn:
        mods = b''.join(of13.message(of13.FLOW_MOD, flow_mod(
            match=match(eth_dst=i + 1), instructions=[apply_actions(output(2))]), i)
            for i in range(n))
        conn.send_raw(mods)
        conn.barrier()
        assert not conn.inbox
        assert len({f['match']['eth_dst'] for f in conn.flows()}) == n
    done = run_dpctl(net, *who.controller.options(), '--json', 'tls:127.0.0.1', 'stats-flow')
    assert done.stdout.count('eth_dst') >= n


def test_requests_in_one_record(switch, net, who):
    """What comes out of one record at once is answered without more from the peer: also the
    bytes that did not fit into what the switch read first."""
    with tls_conn(net, who.controller.context()) as conn:
        for size in (1, 7, 1000, 20000, 60000, 65527):
            body = bytes(size)
            count = 300000 // (size + 8)
            conn.send_raw(b''.join(of13.message(of13.ECHO_REQUEST, body, i)
                                   for i in range(count)))
            for i in range(count):
                reply = conn.recv()
                assert (reply.type, reply.xid, reply.body) == (of13.ECHO_REPLY, i, body)


def test_several_at_once(switch, net, who):
    conns = [tls_conn(net, who.controller.context()) for _ in range(30)]
    for conn in conns:
        conn.send(of13.FEATURES_REQUEST, xid=5)
    for conn in conns:
        assert conn.wait(5).type == of13.FEATURES_REPLY
        conn.close()
    assert counter(switch) == 0


def test_a_peer_that_does_not_read(switch, net, who, witness):
    for i in range(300):
        witness.send(of13.FLOW_MOD, flow_mod(match=match(eth_dst=i + 1)))
    witness.barrier()
    deaf = tls_conn(net, who.controller.context())
    request = of13.message(of13.MULTIPART_REQUEST,
                           struct.pack('!HH4x', of13.MP_FLOW, 0) + of13.flow_request())
    deaf.sock.setblocking(False)
    try:
        for _ in range(5000):
            deaf.sock.send(request * 4)
    except (ssl.SSLWantWriteError, BlockingIOError):
        pass
    witness.barrier()
    witness.features()
    deaf.close()


class Controller:
    """A listening TLS socket in the switch's namespace."""

    def __init__(self, net, context):
        self.context = context
        with inside(net.switch_ns):
            self.listener = socket.create_server(('127.0.0.1', 0))
        self.listener.settimeout(DEADLINE)
        self.port = self.listener.getsockname()[1]

    def accept(self):
        sock, _ = self.listener.accept()
        sock.settimeout(DEADLINE)
        try:
            return self.context.wrap_socket(sock, server_side=True)
        except BaseException:
            sock.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


def test_the_switch_connects(net, who):
    with Controller(net, who.controller.context(server=True)) as controller, \
            Switch(net, *who.switch.options(), '--peer-name=localhost',
                   f'tls:localhost:{controller.port}') as switch:
        for _ in range(2): # it comes again
            with of13.Conn(controller.accept()) as conn:
                assert conn.sock.getpeercert()['subject'] == ((('commonName', 'switch'),),)
                assert conn.features()['datapath_id'] == 1
                conn.flow(apply_actions(output(2)))
        assert counter(switch) == 0


def test_a_relay_connects(net, who, tmp_path):
    """ofprotocol has the same options; much goes through it both ways."""
    with Controller(net, who.controller.context(server=True)) as controller, Switch(net) as switch:
        with inside(net.switch_ns):
            relay = Relay(tmp_path, switch.address, [f'tls:127.0.0.1:{controller.port}'],
                          *who.switch.options())
        with relay, of13.Conn(controller.accept()) as conn:
            assert conn.sock.getpeercert()['subject'] == ((('commonName', 'switch'),),)
            for i in range(2000):
                conn.send(of13.FLOW_MOD, flow_mod(match=match(eth_dst=i + 1)))
            conn.barrier()
            assert len(conn.flows()) == 2000


def test_auxiliary_connections(net, who):
    with Controller(net, who.controller.context(server=True)) as controller, \
            Switch(net, *who.switch.options(), '--aux=1', f'tls:127.0.0.1:{controller.port}'):
        with of13.Conn(controller.accept()) as conn, of13.Conn(controller.accept()) as aux:
            assert conn.features()['auxiliary_id'] == 0
            assert aux.features()['auxiliary_id'] == 1


# ------------------------------------------------------------------------------------ peers refused

PEERS = {
    'no certificate': (lambda w: w.controller.context(show=False), 'has shown no certificate'),
    'foreign CA': (lambda w: w.foreign.context(), 'refused: it is not signed by the CA'),
    'expired': (lambda w: w.expired.context(), 'refused: it has expired'),
    'TLS 1.1': (lambda w: w.controller.context(version=TLS1_1), 'has no TLS 1.2 or 1.3'),
    'does not trust us': (lambda w: w.controller.trusting(w.foreign_ca).context(),
                          'refuses our TLS: it does not know the CA of our certificate'),
}


@pytest.mark.filterwarnings('ignore::DeprecationWarning')
@pytest.mark.parametrize('version', [None, TLS1_2])
@pytest.mark.parametrize('kind', PEERS)
def test_a_peer_is_refused(switch, net, who, witness, kind, version):
    make, words = PEERS[kind]
    context = make(who)
    if version and kind != 'TLS 1.1':
        context.maximum_version = version
    with pytest.raises((ssl.SSLError, of13.Closed, ConnectionError)):
        with tls_conn(net, context) as conn: # with TLS 1.3 a client hears of it only now
            conn.features()
    says(switch, f'tls:127.0.0.1:[0-9]+: the peer.*{words}')
    assert counter(switch) == 1


@pytest.mark.parametrize('data,words', [
    (of13.message(of13.HELLO), ': it began with an OpenFlow hello in plain text'),
    (b'GET / HTTP/1.1\r\nHost: switch\r\n\r\n', ''),
    (b'\xff' * 3000, '')])
def test_plain_text_is_refused(switch, net, witness, data, words):
    with inside(net.switch_ns):
        sock = socket.create_connection(('127.0.0.1', PORT), DEADLINE)
    with sock:
        sock.sendall(data)
        assert sock.recv(100) == bytes([21, 3, 3, 0, 2, 2, 70]) # alert: protocol version
    says(switch, f'tls:127.0.0.1:[0-9]+: the peer does not speak TLS{words}\n')
    assert counter(switch) == 1


def test_broken_records(switch, net, witness):
    """Lengths that lie, pieces of handshakes, alerts and data before their time"""
    hellos = [bytes([22, 3, 1, 0x40, 1]), bytes([22, 3, 3, 0, 0]) * 100,
              bytes([22, 3, 1, 0, 4, 1, 0, 0, 0]), bytes([22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff]),
              bytes([21, 3, 3, 0, 2, 2, 40]), bytes([23, 3, 3, 0, 1, 0]),
              bytes([22, 3, 1, 0xff, 0xff]) + bytes(70000)]
    for data in hellos:
        with inside(net.switch_ns):
            sock = socket.create_connection(('127.0.0.1', PORT), DEADLINE)
        with sock:
            with contextlib.suppress(OSError):  # the switch may be gone already
                sock.sendall(data)
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(1000):
                    pass
    until(lambda: counter(switch) == len(hellos), 'all refused')


def test_the_log_is_limited(switch, net):
    for _ in range(100):
        with inside(net.switch_ns):
            sock = socket.create_connection(('127.0.0.1', PORT), DEADLINE)
        with sock:
            sock.sendall(of13.message(of13.HELLO))
            sock.recv(100)
    until(lambda: counter(switch) == 100, 'all are counted')
    assert 5 <= switch.output().count('does not speak TLS') <= 50


@pytest.mark.long
def test_half_a_handshake(switch, net, witness):
    """Silent and slow peers are given up after 10 s; nobody else waits for them."""
    with inside(net.switch_ns):
        socks = [socket.create_connection(('127.0.0.1', PORT), 60) for _ in range(6)]
    for i, sock in enumerate(socks):
        sock.sendall(bytes([22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3])[:2 * i])
    witness.barrier()
    started = time.monotonic()
    for sock in socks:
        assert sock.recv(100) == b''
        sock.close()
    assert time.monotonic() - started > 5
    assert counter(switch) == len(socks)
    says(switch, 'tls:127.0.0.1:[0-9]+: the TLS handshake took too long')


def talk(net, who, version, *steps):
    """openssl s_client at the switch: writes each step, waits for what must come -> its output"""
    with inside(net.switch_ns):
        client = subprocess.Popen(
            ['openssl', 's_client', '-connect', f'127.0.0.1:{PORT}', '-msg', version,
             '-key', who.controller.key, '-cert', who.controller.cert, '-CAfile',
             who.controller.ca], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
    said = b''
    try:
        deadline = time.monotonic() + DEADLINE
        for data, wanted in steps:
            start = len(said)
            client.stdin.write(data)
            client.stdin.flush()
            while wanted not in said[start:]:
                left = deadline - time.monotonic()
                assert left > 0 and select.select([client.stdout], [], [], left)[0], said
                more = os.read(client.stdout.fileno(), 65536)
                assert more, said
                said += more
    finally:
        client.kill()
        client.communicate()


ECHO = (of13.message(of13.ECHO_REQUEST, b'hear me'), b'hear me')


def test_new_keys(switch, net, who, witness):
    """TLS 1.3's key update, with and without a wish for the other side's"""
    talk(net, who, '-tls1_3', (b'', b'Verify return code: 0'),
         (of13.message(of13.HELLO), b''), ECHO, (b'K\n', b'>>> TLS 1.3, Handshake'), ECHO,
         (b'k\n', b'>>> TLS 1.3, Handshake'), ECHO, (b'K\n', b'>>> TLS 1.3, Handshake'), ECHO)
    assert counter(switch) == 0


def test_no_renegotiation(switch, net, who, witness):
    talk(net, who, '-tls1_2', (b'', b'Verify return code: 0'), (of13.message(of13.HELLO), b''),
         ECHO, (b'R\n', b'no_renegotiation'))


# ------------------------------------------------------------------------------------ dpctl refuses

def refused(net, *args):
    done = run_dpctl(net, *args, 'features', check=False)
    assert done.returncode == 1 and not done.stdout, done
    return done.stderr


@pytest.mark.filterwarnings('ignore::DeprecationWarning')
@pytest.mark.parametrize('context,words', [
    (lambda w: w.expired.context(server=True), "the peer's certificate is refused: it has expired"),
    (lambda w: w.foreign.context(server=True),
     "the peer's certificate is refused: it is not signed by the CA of --ca-cert"),
    (lambda w: w.switch.context(server=True, version=TLS1_1), 'protocol version'),
    (lambda w: w.switch.trusting(w.foreign_ca).context(server=True),
     'the peer refuses our TLS: it does not know the CA of our certificate')])
def test_dpctl_refuses_a_switch(net, who, context, words):
    with Controller(net, context(who)) as fake:
        with inside(net.switch_ns):
            process = subprocess.Popen([binary('utils/dpctl/dpctl'), *who.controller.options(),
                                        f'tls:127.0.0.1:{fake.port}', 'features'],
                                       stderr=subprocess.PIPE, text=True)
        try:
            with fake.accept() as sock:
                sock.recv(100)
        except (ssl.SSLError, ConnectionError):
            pass
        _, said = process.communicate(timeout=DEADLINE)
        assert process.returncode == 1
        assert words in said


@pytest.mark.parametrize('identity,words', [
    (lambda w: w.expired, 'the peer refuses our TLS: our certificate has expired'),
    (lambda w: w.foreign, 'the peer refuses our TLS: it does not know the CA of our certificate')])
def test_dpctl_is_refused(switch, net, who, identity, words):
    assert words in refused(net, *identity(who).options(), 'tls:127.0.0.1')


def test_names(switch, net, who):
    """--peer-name is looked for in the certificate."""
    for name in ('localhost', '127.0.0.1'):
        run_dpctl(net, *who.controller.options(), f'--peer-name={name}', 'tls:127.0.0.1',
                  'features')
    for name in ('example.org', '127.0.0.2', 'switch.localhost'):
        assert f"the peer's certificate is refused: it is not for {name}" in \
            refused(net, *who.controller.options(), f'--peer-name={name}', 'tls:127.0.0.1')


def test_the_name_that_it_connects_to(net, who):
    """Without --peer-name it must be in the certificate: another switch's won't do."""
    other = who.authority.identity('other', alt='DNS:other.example.org,IP:192.0.2.1')
    with Switch(net, *other.options(), 'ptls:'):
        for host in '127.0.0.1', 'localhost':
            said = refused(net, *who.controller.options(), f'tls:{host}')
            assert f"the peer's certificate is refused: it is not for {host}" in said
            assert '--peer-name=any' in said
        for name in 'any', 'other.example.org', '192.0.2.1':
            run_dpctl(net, *who.controller.options(), f'--peer-name={name}', 'tls:127.0.0.1', 'features')


def test_the_switch_wants_the_controllers_name(net, who):
    other = who.authority.identity('elsewhere', alt='DNS:elsewhere.example.org')
    with Controller(net, other.context(server=True)) as controller:
        address = f'tls:127.0.0.1:{controller.port}'
        with Switch(net, *who.switch.options(), address) as switch:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                controller.accept()
            says(switch, f"{address}: not connected: the peer's certificate is refused: it is not for 127.0.0.1")
        with Switch(net, *who.switch.options(), '--peer-name=any', address), controller.accept():
            pass


def test_the_switch_refuses_a_controller(net, who):
    with Controller(net, who.expired.context(server=True)) as controller, \
            Switch(net, *who.switch.options(), f'tls:127.0.0.1:{controller.port}') as switch:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            controller.accept()
        says(switch, f"tls:127.0.0.1:{controller.port}: not connected: the peer's certificate is refused: "
                     'it has expired')
        assert counter(switch) >= 1


# ------------------------------------------------------------------------------------ the wrong port

def test_plain_dpctl_at_a_tls_port(switch, net):
    assert 'the switch speaks TLS at this address: write tls:' in refused(net, 'tcp:127.0.0.1')


def test_tls_at_a_plain_port(net, who):
    with Switch(net, 'ptcp:') as switch:
        assert 'the peer does not speak TLS: it began with an OpenFlow hello in plain text' in \
            refused(net, *who.controller.options(), 'tls:127.0.0.1')
        says(switch, 'tcp:127.0.0.1:[0-9]+: the peer speaks TLS')
        assert counter(switch, 'channel.hello_failed') == 1


# ------------------------------------------------------------------------------------ options

def without(options, name):
    return [o for o in options if not o.startswith(name)]


def options_cases(who):
    good = who.switch.options()
    nothing = os.path.join(str(who.directory), 'nothing')
    encrypted = os.path.join(str(who.directory), 'encrypted')
    with open(nothing, 'w') as f:
        f.write('nothing\n')
    pki.openssl('ec', '-in', who.switch.key, '-aes128', '-passout', 'pass:word', '-out', encrypted)
    for option in ('--private-key', '--certificate', '--ca-cert'):
        rest = without(good, option)
        yield rest, f'{option} is missing: TLS needs --private-key, --certificate and --ca-cert'
        yield [*rest, f'{option}=/no/such/file'], \
            f'{option} /no/such/file: No such file or directory'
        what = 'private key' if option == '--private-key' else 'certificate'
        yield [*rest, f'{option}={nothing}'], \
            f'{option} {nothing}: the file has no {what} in PEM format'
    yield ['--peer-name=x'], '--private-key is missing'
    yield [*good, '--peer-name='], '--peer-name is empty'
    yield [*without(good, '--private-key'), f'--private-key={who.controller.key}'], \
        f'--private-key {who.controller.key}: not the key of the certificate {who.switch.cert}'
    yield [*without(good, '--private-key'), f'--private-key={encrypted}'], \
        f'--private-key {encrypted}: it is encrypted'
    yield [], 'tls:127.0.0.1: TLS needs --private-key, --certificate and --ca-cert'


def test_options_are_checked(net, who):
    for options, words in options_cases(who):
        done = run_dpctl(net, *options, 'tls:127.0.0.1', 'features', check=False)
        assert done.returncode in (1, 2) and words in done.stderr, (options, done)
    daemons = [*[*options_cases(who)][-3:-1],
               ([], "needs private-key, certificate and ca-cert for 'tls:127.0.0.1'")]
    for options, words in daemons:
        switch = Switch(net, *options, 'tls:127.0.0.1', wait=False)
        switch.start()
        assert switch.process.wait(DEADLINE) == 1
        assert re.search(r'^ofdatapath: .*' + re.escape(words), switch.output(), re.M)
        switch.abandon()


def replace(identity, key, cert):
    """As whoever renews certificates does"""
    for source, target in ((key, identity.key), (cert, identity.cert)):
        shutil.copy(source, target + '.new')
        os.rename(target + '.new', target)


def test_new_files_are_used(net, who):
    """A certificate is renewed under a running switch; bad files change nothing."""
    mine = who.authority.identity('renewed', days=-1)
    controller = who.controller.options()
    with Switch(net, *mine.options(), 'ptls:') as switch:
        assert 'it has expired' in refused(net, *controller, 'tls:127.0.0.1')
        replace(mine, who.switch.key, who.switch.cert)
        with tls_conn(net, who.controller.context()) as conn:
            conn.features()
            replace(mine, who.controller.key, who.switch.cert)
            run_dpctl(net, *controller, 'tls:127.0.0.1', 'features')
            run_dpctl(net, *controller, 'tls:127.0.0.1', 'features')
            conn.features()
        assert switch.output().count(f'--private-key {mine.key}: not the key of the certificate '
                                     f'{mine.cert}; the files as they were stay in use\n') == 1
        replace(mine, who.switch.key, who.switch.cert)
        run_dpctl(net, *controller, 'tls:127.0.0.1', 'features')
