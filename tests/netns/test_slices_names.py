# SPDX-License-Identifier: Apache-2.0
"""Whose a slice is: by the common name of a certificate, in any of its encodings, and after a reload.  Where
connections have slices, nobody gets all rights because his name was not understood."""
import json
import os
import re
import signal
import socket
import struct
import subprocess

import pytest

from support import of10msg as v1, of13, pki
from support.topo import Switch, Topology, binary, dpctl, inside
from support.wait import until

ET_HELLO_FAILED, HFC_EPERM = 0, 1
BMP, T61, UTF8 = 'MASK:0x0800', 'MASK:0x0004', 'utf8only'


@pytest.fixture(scope='module')
def topo():
    with Topology(4) as t:
        yield t


@pytest.fixture(scope='module')
def authority(tmp_path_factory):
    if 'no TLS' in dpctl('--ca-cert=x', 'tls:127.0.0.1', 'features', check=False).stderr:
        pytest.skip('this build has no TLS')
    return pki.Authority(tmp_path_factory.mktemp('pki'), 'ours')


@pytest.fixture(scope='module')
def me(authority):
    return authority.identity('switch')


def tls_socket(topo, identity):
    with inside(topo.switch_ns):
        return identity.context().wrap_socket(socket.create_connection(('127.0.0.1', 6653), of13.PATIENCE))


def tls(topo, identity):
    return of13.Conn(tls_socket(topo, identity))


def is_refusal(msg):
    return (msg.type, msg.body[:4]) == (of13.ERROR, struct.pack('!HH', ET_HELLO_FAILED, HFC_EPERM))


def run(topo, identity, *args):
    with inside(topo.switch_ns):
        return dpctl('--json', *identity.options(), 'tls:127.0.0.1', *args, check=False)


def ports(topo, identity):
    """Those that it sees, or why it is refused"""
    done = run(topo, identity, 'port-desc')
    if done.returncode:
        return done.stderr
    return {int(n) for n in re.findall(r'"port_no": *(\d+)', done.stdout)}


def counter(switch, name):
    return json.loads(switch.dpctl('--json', 'counters').stdout)[name]


@pytest.mark.parametrize('name', ['switch 1', 'Köln', '日本', 'a+b=c, d'])
@pytest.mark.parametrize('strings', [UTF8, BMP, T61])
def test_names(topo, authority, me, name, strings):
    """What the person typed is what the certificate says, whichever its encoding."""
    if strings == T61 and name == '日本':
        pytest.skip('T61String has no such letters')
    mine = authority.identity('mine', subject='/CN=' + name.replace('+', '\\+'), strings=strings)
    with Switch(topo, *me.options(), 'ptls:', f'--slice-common-name=red:{name}', '--slice-ports=red:1') as switch:
        assert ports(topo, mine) == {1}
        assert run(topo, mine, 'table-mod', 'table=1').returncode
        assert counter(switch, 'slice.red.refused') == 1 and counter(switch, 'channel.no_slice') == 0


def test_whoever_matches_none_may_do_nothing(topo, authority, me):
    """He is told, logged and counted; those who are named, and other addresses, are not concerned."""
    red, stranger = authority.identity('red'), authority.identity('der Fremde')
    options = ['--slice-common-name=red:red', '--slice-ports=red:1', '--slice-connection=red:ptls:',
               '--slice-common-name=admin:the admin', '--slice=admin:all']
    with Switch(topo, *me.options(), 'ptls:', *options) as switch, switch.connect() as admin:
        assert "no slice is for the common name 'der Fremde'" in ports(topo, stranger)
        assert run(topo, stranger, 'flow-mod', 'cmd=add', 'apply:output=2').returncode
        assert admin.flows() == []
        until(lambda: counter(switch, 'channel.no_slice') == 2, 'the count')
        assert "no slice is for the common name 'der Fremde'" in switch.output()
        assert ports(topo, red) == {1}
        assert ports(topo, authority.identity('the admin')) == {1, 2, 3, 4}
        assert set(admin.ports()) == {1, 2, 3, 4}
        with v1.Conn(tls_socket(topo, stranger), hello=False) as old:
            old.send(of13.HELLO)
            assert old.recv().type == of13.HELLO
            assert is_refusal(old.recv())


@pytest.mark.parametrize('kind', ['several', 'none', 'zero'])
def test_names_that_are_no_text(topo, authority, me, kind):
    """red's slice goes to nobody whom a program that reads otherwise may have taken for somebody else."""
    subject = {'several': '/CN=red/CN=blue', 'none': '/O=red'}.get(kind, '/CN=redXblue')
    mine = authority.identity('mine', subject=subject)
    if kind == 'zero':
        mine = authority.altered(mine, b'redXblue', b'red\0blue')
    options = [f'--slice-common-name={name}:{name}' for name in ('red', 'blue', 'redblue')]
    with Switch(topo, *me.options(), 'ptls:', *options) as switch:
        assert 'no common name, several, or one' in ports(topo, mine)
        assert counter(switch, 'channel.no_slice') == 1


CONF = """
interfaces = {ports}
listen = ptls:
listen = punix:{socket}
listen = punix:{dir}/red
private-key = {me.key}
certificate = {me.cert}
ca-cert = {me.ca}

[slice red]
connection = ptls:
common-name = red one
ports = 1

[slice blue]
connection = ptls:
common-name = blue
ports = 2

[slice local]
connection = punix:{dir}/red
ports = 3
"""


def without(conf, name):
    return re.sub(rf'\[slice {name}\]\n([^[]+\n)*', '', conf)


def test_a_slice_that_is_taken_out(topo, authority, me, tmp_path):
    """SIGHUP: whose slice has gone is not connected any more, and by TLS doesn't come back."""
    path = tmp_path / 's.conf'
    switch = Switch(topo, f'--config={path}', interfaces=[], listen=False)
    conf = CONF.format(ports=','.join(topo.port_names()), dir=tmp_path, socket=switch.path, me=me)
    path.write_text(conf)
    red, blue = authority.identity('red one'), authority.identity('blue')
    with switch, tls(topo, red) as first, tls(topo, blue) as second, of13.Conn(f'unix:{tmp_path}/red') as third:
        assert set(first.ports()) == {1} and set(second.ports()) == {2} and set(third.ports()) == {3}
        path.write_text(without(without(conf, 'red'), 'local').replace('ports = 2', 'ports = 4'))
        os.kill(switch.process.pid, signal.SIGHUP)
        for conn in first, third:
            assert is_refusal(conn.recv())
            with pytest.raises(of13.Closed):
                conn.recv()
        assert set(second.ports()) == {4}
        assert "no slice is for the common name 'red one'" in ports(topo, red)
        assert counter(switch, 'channel.no_slice') == 3
        assert f'punix:{tmp_path}/red: no slice is for it any more' in switch.output()


def test_a_slice_that_comes(topo, authority, me, tmp_path):
    """The first slice of an address: who is connected gets it, or must go."""
    path = tmp_path / 's.conf'
    switch = Switch(topo, f'--config={path}', interfaces=[], listen=False)
    conf = CONF.format(ports=','.join(topo.port_names()), dir=tmp_path, socket=switch.path, me=me)
    path.write_text(without(without(without(conf, 'red'), 'local'), 'blue'))
    red, other = authority.identity('red one'), authority.identity('other')
    with switch, tls(topo, red) as first, tls(topo, other) as second:
        assert set(first.ports()) == set(second.ports()) == {1, 2, 3, 4}
        path.write_text(conf)
        switch.dpctl('reload')
        assert set(first.ports()) == {1}
        assert is_refusal(second.recv())


def test_names_need_certificates(topo, tmp_path):
    """--check: nobody has a common name at a Unix socket, so that slice would be nobody's."""
    path = tmp_path / 's.conf'
    path.write_text('listen = punix:/tmp/x\n[slice red]\nconnection = punix:/tmp/x\ncommon-name = red\n')
    done = subprocess.run([binary('datapath/ofdatapath'), '--check', f'--config={path}'], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 1 and 'nobody has a common name at punix:/tmp/x' in done.stderr
