# SPDX-License-Identifier: Apache-2.0
"""Which switches may join (ofqos.joining, docs/how-to/ofqosd.md): approval, and a certificate that is pinned.  Needs no root."""
import json
import os
import ssl
import sys

import pytest

from support import pki
from support.app import PACKAGE
from support.fakeswitch import StandIn, run, until
from support.served import run as command

sys.path.append(PACKAGE)
from ofqos.channel import Limits  # noqa: E402
from ofqos.joining import MOST_WAITING, Joining, digest  # noqa: E402
from ofqos.switches import Switches  # noqa: E402

DP, OTHER = f'{1:016x}', f'{2:016x}'
SURE = Limits(seconds=20, probe=20)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / 'switches.json')


def test_one_waits_and_is_approved(path):
    joining = Joining(path)
    assert f'ofqos switches approve {DP}' in joining.refuses(DP, 'tcp:a:1', None)
    assert Joining(path).list()['waiting'][DP]['peer'] == 'tcp:a:1'
    with pytest.raises(ValueError, match='does not wait'):
        joining.approve(OTHER)
    Joining(path).approve(DP)                           # another process: `ofqos switches approve`
    assert joining.refuses(DP, 'tcp:a:2', None) is None
    joining.forget(DP)
    assert joining.refuses(DP, 'tcp:a:2', None) and os.stat(path).st_mode & 0o077 == 0


def test_the_certificate_is_pinned(path):
    joining = Joining(path)
    joining.refuses(DP, 'tls:a:1', b'one')
    joining.approve(DP)
    assert joining.refuses(DP, 'tls:a:1', b'one') is None
    for other in b'two', None:
        assert 'another certificate' in joining.refuses(DP, 'tls:b:1', other)
    assert joining.list()['approved'][DP]['certificate'] == digest(b'one') and not joining.list()['waiting']


def test_who_is_named_is_approved(path):
    joining = Joining(path)
    assert joining.refuses(DP, 'tls:a:1', b'one', named=True) is None
    assert 'another certificate' in joining.refuses(DP, 'tls:a:1', b'two', named=True)


def test_a_flood_of_new_ones(path):
    """Neither the file nor the work grows with it."""
    joining = Joining(path)
    joining._writes.rate = joining._writes.burst = 1e9
    for n in range(MOST_WAITING + 20):
        joining.refuses(f'{n:016x}', 'tcp:a:1', None)
    assert len(joining.list()['waiting']) == MOST_WAITING
    joining._writes.rate, joining._writes.burst = 1e-9, 0
    before = os.stat(path).st_mtime_ns
    assert joining.refuses('f' * 16, 'tcp:a:1', None) and os.stat(path).st_mtime_ns == before


@pytest.mark.parametrize('text', ['', '[]', '{}', '{"approved": {"x": 1}, "waiting": {}}', '{"approved": {"x": {"y": 1}}, "waiting": {}}'])
def test_files_that_are_none(path, text):
    with open(path, 'w') as f:
        f.write(text)
    with pytest.raises(ValueError, match='no list of switches'):
        Joining(path)
    done = command('ofqos.joining', '--file', path, 'list')
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and path in done.stderr


def test_command(path):
    def said(*words):
        done = command('ofqos.joining', '--file', path, *words)
        return done.returncode, done.stdout + done.stderr
    assert said('list') == (0, 'no switch has come\n')
    Joining(path).refuses(DP, 'tls:a:1', b'one')
    assert said('list')[1].startswith(f'{DP} waiting tls:a:1 ') and 'certificate ' + digest(b'one')[:16] in said('list')[1]
    assert said('approve', '00:00:00:00:00:00:00:01') == (0, '') and ' approved ' in said('list')[1]
    assert said('approve', '1')[0] == 1 and 'approved already' in said('approve', '1')[1]
    assert said('forget', '7') == (1, f'ofqos switches: switch {7:016x} is not known\n')
    assert 'is no datapath id' in said('forget', 'br0')[1]
    found = command('ofqos.joining', '--file', path, '--json', 'list')
    assert list(json.loads(found.stdout)['approved']) == [DP]


def test_switches_that_connect(path):
    """One that is new is kept out until it is approved; then it is there by itself, with its next try."""
    async def work():
        turned, came = [], []
        async with Switches(listen=['tcp:127.0.0.1:0'], limits=SURE, joining=Joining(path), turned=turned.append,
                            up=came.append) as switches, StandIn(1) as switch:
            await (await switch.connect(switches.ports[0]))
            assert not came and f'switch {DP} is new, and waits' in turned[0]
            Joining(path).approve(DP)
            await switch.connect(switches.ports[0])
            await until(lambda: 1 in switches)
    run(work())


def test_another_switch_with_its_id(path, tmp_path):
    """Its certificate is of the same CA, and still not the one that is pinned."""
    ca = pki.Authority(tmp_path, 'ours')
    mine, first, second = (ca.identity(name) for name in ('controller', 'first', 'second'))

    def context(files, purpose):
        made = ssl.create_default_context(purpose, cafile=files.ca)
        made.load_cert_chain(files.cert, files.key)
        made.check_hostname, made.verify_mode = False, ssl.CERT_REQUIRED
        return made

    async def work():
        turned = []
        for files in first, second:
            async with StandIn(1, tls=context(files, ssl.Purpose.CLIENT_AUTH)) as switch, \
                    Switches([switch.address], tls=context(mine, ssl.Purpose.SERVER_AUTH), limits=SURE,
                             joining=Joining(path), turned=turned.append) as switches:
                if files is first:
                    await until(lambda: 1 in switches)
                else:
                    await until(lambda: turned)
                    assert 1 not in switches and 'another certificate' in turned[0]
    run(work())
