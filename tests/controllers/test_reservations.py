# SPDX-License-Identifier: Apache-2.0
"""ofqos-reserve over a ring of five switches: daemons, kernel queues, packets that are counted."""
import os
import re
import signal
import struct
import subprocess
import sys

import pytest

from support import tc, topo
from support.app import PACKAGE, Rest
from support.load import Cbr, Listener
from support.ring import BEFORE, HOST, NEXT, Ring
from support.wait import until

sys.path.append(PACKAGE)
from ofqos.reserve import lldp, words  # noqa: E402
from ofqos.reserve.graph import Place  # noqa: E402

rooted = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')
MBIT = 1_000_000
PORT = 5000


@pytest.fixture
def ring():
    with Ring(5) as made:
        yield made


def frame(source, sink, size=200, dport=PORT):
    return topo.eth(topo.udp4(bytes(size - 42), src=f'10.0.0.{source}', dst=f'10.0.0.{sink}',
                              dport=dport), sink, source)


def stream(ring, source, sink, **kw):
    """A hundred numbered frames a second, a small part of what is reserved"""
    return Cbr(ring, source, (frame(source, sink), 100), seconds=60, **kw)


def reserve(app, name='video', source=1, sink=3, rate='5mbit', **more):
    status, made = app.add(name, rate, f'10.0.0.{source}', f'10.0.0.{sink}',
                           match={'udp_dst': PORT}, **more)
    assert status == 201, made
    return made


def way(made):
    return [(int(hop['switch'], 16), hop['in'], hop['out']) for hop in made['path']]


SHORT = [(1, HOST, NEXT), (2, BEFORE, NEXT), (3, BEFORE, HOST)]
LONG = [(1, HOST, BEFORE), (5, NEXT, BEFORE), (4, NEXT, BEFORE), (3, NEXT, HOST)]


def check_parts(ring, *reservations):
    """Each switch has the queues and flows of these, and no others: in the kernel, too."""
    for n in range(1, ring.n + 1):
        wanted = {(hop['out'], made['queue']): made['rate'] for made in reservations
                  for hop in made['path'] if hop['switch'] == f'{n:x}'}
        assert ring.queues(n) == wanted
        flows = sum(len(made['match']) for made in reservations
                    for hop in made['path'] if hop['switch'] == f'{n:x}')
        assert ring.flows(n) == flows
        for port, device in enumerate(ring.switches[n].interfaces, 1):
            kernel = {minor: row['options']['rate']
                      for minor, row in tc.classes(ring.switch_ns, device).items()
                      if 20000 <= minor < 40000}
            assert kernel == {queue: rate for (at, queue), rate in wanted.items() if at == port}


def eventually_parts(ring, app, names=('video',)):
    """Nothing is being left any more, and each switch has what it is to have."""
    made = [app.wait(name, lambda row: row['state'] == 'held' and not row['leaving'])
            for name in names]
    check_parts(ring, *made)
    return made


def all_arrive(heard, sender, at_least=1):
    heard.reaches(at_least)
    sent, = sender.stop()
    numbers = heard.quiet()
    assert sorted(numbers) == list(range(sent))


# ------------------------------------------------------------------------------ competing

@rooted
def test_competing_reservations(ring):
    with ring.controller() as app:
        ring.reaches(1, '10.0.0.3')
        ring.reaches(2, 'fd00::5')
        first = reserve(app, rate='12mbit')
        assert way(first) == SHORT
        assert way(reserve(app, 'second', 2, 3, '5mbit')) == [(2, HOST, NEXT), (3, BEFORE, HOST)]
        # The host's link has 17.64 Mbit/s that may be promised, 0.64 of them are left
        status, answer = app.add('third', '3mbit', '10.0.0.4', '10.0.0.3', dscp='ef')
        assert (status, answer['link'], answer['direction']) == (409, '3:1', 'out')
        assert answer['free'] == 640_000 and '640000 bit/s left' in answer['error']
        # 1 to 2 has 5.64 left: the other way round has more
        status, third = app.add('third', '6mbit', 'fd00::1', 'fd00::2', app=['sip', 'rtp'])
        assert status == 409 and answer['link'] == '3:1' and third['link'] == '1:1'
        status, third = app.add('third', '10mbit', 'fd00::5', 'fd00::2', app=['sip', 'rtp'])
        assert status == 201 and [hop['switch'] for hop in third['path']] == ['5', '4', '3', '2']
        assert len(third['match']) == 12 and all(m['ipv6_src'] == 'fd00::5' for m in third['match'])
        check_parts(ring, *app.get('/reservations'))
        found = app.get('/paths?from=10.0.0.5&to=10.0.0.2&rate=6mbit')
        assert [row['fits'] for row in found] == [False, True]
        for link in app.get('/topology')['links']:
            assert link['promised'] <= link['limit'] <= 0.9 * 20 * MBIT
        assert app.rest('DELETE', '/reservations/video') == (204, None)
        assert app.rest('GET', '/reservations/video')[0] == 404
        eventually_parts(ring, app, ('second', 'third'))


@rooted
@pytest.mark.long
def test_command_line(ring):
    def say(*arguments, good=True):
        done = subprocess.run(
            ['ip', 'netns', 'exec', ring.switch_ns, sys.executable, '-m', 'ofqos.reserve.cli',
             *arguments], env=dict(os.environ, PYTHONPATH=PACKAGE, OFQOS_TOKEN_FILE=app.rest.token), text=True, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert (done.returncode == 0) == good, done
        return done.stdout if good else done.stderr

    with ring.controller() as app:
        # A host that has sent nothing yet is asked for
        assert 'held, by 1:2 2:2 3:1' in say('add', 'video', '5mbit', '10.0.0.1', '10.0.0.3',
                                             'app=rtp', 'dscp=ef')
        assert '1:2 2:2 3:1: 12640kbit free' in say('paths', 'fd00::1', '10.0.0.3')
        assert 'does not fit' in say('paths', '1:1', '3:1', '15mbit')
        assert 'there already' in say('add', 'video', '5mbit', '1:1', '3:1', 'app=rtp', good=False)
        assert 'ip_dscp=46' in (told := say('show', 'video')) and '0 dropped' in told
        assert say('list').count('\n') == 1
        assert '10.0.0.3' in say('topology')
        assert 'by 1:3 5:3 4:3 3:1' in say('move', 'video', '1:2')
        say('del', 'video')
        assert say('list') == '' and 'no reservation video' in say('del', 'video', good=False)
        assert 'no host 10.0.0.99' in say('add', 'x', '1mbit', '10.0.0.99', '3:1', good=False)


@rooted
@pytest.mark.long
def test_wrong_requests(ring):
    with ring.controller() as app:
        good = {'name': 'x', 'rate': '1mbit', 'from': '1:1', 'to': '3:1', 'app': 'sip'}
        for change, word in (({'name': 'a/b'}, 'name'), ({'name': 'n' * 32}, 'name'),
                             ({'rate': 'fast'}, 'fast'), ({'rate': '1bit'}, '8kbit'),
                             ({'ceil': '10kbit'}, 'ceil'), ({'from': 'me'}, 'me'),
                             ({'from': '10.0.0.1', 'to': 'fd00::1'}, 'IPv4'),
                             ({'app': 'nothing'}, 'nothing'), ({'dscp': 'xx'}, 'xx'),
                             ({'match': {'tcp_dst': 70000}}, '16 bits'),
                             ({'match': {'in_port': 1}}, 'in_port'), ({'more': 1}, 'more'),
                             ({'app': None}, 'needed')):
            status, answer = app.rest('POST', '/reservations', {**good, **change})
            assert status == 400 and word in answer['error'], (change, answer)
        assert Rest(ring.switch_ns)('POST', '/reservations', good)[0] == 401
        assert Rest(ring.switch_ns)('DELETE', '/reservations/x')[0] == 401
        assert Rest(ring.switch_ns)('GET', '/reservations') == (200, [])
        for method, path, status in (('GET', '/', 404), ('PUT', '/topology', 405),
                                     ('POST', '/topology', 405), ('GET', '/paths?from=1:1', 400),
                                     ('POST', '/reservations/x/move', 404)):
            assert app.rest(method, path, {} if method == 'POST' else None)[0] == status
        assert app.add('x', '1mbit', '1:1', '1:1', app='sip')[0] == 409
        assert app.add('x', '1mbit', '1:1', '9:1', app='sip')[0] == 404
        check_parts(ring)


# --------------------------------------------------------------------------------- refusals

@rooted
def test_the_third_hop_refuses(ring):
    """Its port's root is somebody else's: nothing is left on the first two."""
    with ring.controller() as app:
        topo.sh('ip', 'netns', 'exec', ring.switch_ns, 'tc', 'qdisc', 'replace', 'dev', 'p3', 'root',
                'pfifo')
        status, answer = app.add('video', '5mbit', '10.0.0.1', '10.0.0.3', match={'udp_dst': PORT})
        assert status == 409 and answer['switch'] == '3' and 'OFPSFC_BUSY' in answer['error'], answer
        check_parts(ring)
        assert all(not link['promised'] for link in app.get('/topology')['links'])
        topo.sh('ip', 'netns', 'exec', ring.switch_ns, 'tc', 'qdisc', 'del', 'dev', 'p3', 'root')
        assert way(reserve(app)) == SHORT
        check_parts(ring, *app.get('/reservations'))


# ------------------------------------------------------------------------ links and switches

@rooted
def test_a_path_is_moved_without_loss(ring):
    with ring.controller() as app, Listener(ring, 3, 200) as heard:
        reserve(app)
        ring.reaches(1, '10.0.0.3')
        with stream(ring, 1, 3) as sender:
            heard.reaches(50)
            for links, wanted in (['1:2'], LONG), (['1:3'], SHORT), (['2:2'], LONG):
                status, made = app.rest('POST', '/reservations/video/move', {'avoid': links})
                assert status == 200 and way(made) == wanted
                eventually_parts(ring, app)
                heard.reaches(len(heard.numbers) + 50)
            all_arrive(heard, sender)
        assert app.get('/reservations/video')['moves'] == 3


@rooted
@pytest.mark.long
def test_links_are_cut(ring):
    """The newest that has no room on the other way is without a path until the link is back."""
    with ring.controller() as app, Listener(ring, 3, 200) as heard:
        reserve(app, rate='10mbit')
        reserve(app, 'other', 4, 3, '3mbit')
        reserve(app, 'third', 2, 5, '10mbit')
        assert [way(app.get(f'/reservations/{name}'))[0] for name in ('video', 'third')] == [
            (1, HOST, NEXT), (2, HOST, BEFORE)]
        with stream(ring, 1, 3) as sender:
            heard.reaches(50)
            ring.set_link(1, False)
            moved = app.wait('video', lambda row: way(row) == LONG)
            assert moved['state'] == 'held' and moved['moves'] == 1
            heard.reaches(len(heard.numbers) + 100)
            before = set(heard.numbers)
            app.wait('third', lambda row: row['path'] and row['path'][0]['out'] == NEXT)
            eventually_parts(ring, app, ('video', 'other', 'third'))
            ring.set_link(4, False)             # 4 - 5: nothing leads from 1 and 5 to the others
            for name in 'video', 'third':
                broken = app.wait(name, lambda row: row['state'] == 'broken')
                assert 'no way leads' in broken['why'] and not broken['path']
            check_parts(ring, app.get('/reservations/other'))
            ring.set_link(1, True)
            app.wait('video', lambda row: row['state'] == 'held')
            eventually_parts(ring, app, ('video', 'other', 'third'))
            last = max(heard.numbers)
            heard.reaches(len(heard.numbers) + 100)
            assert before and max(heard.numbers) > last
        assert all(link['promised'] <= link['limit'] for link in app.get('/topology')['links'])


@rooted
@pytest.mark.long
@pytest.mark.parametrize('signum', (signal.SIGTERM, signal.SIGKILL))
def test_the_controller_restarts(ring, signum):
    """Reservations are found again from what the switches have; packets notice nothing."""
    with Listener(ring, 3, 200) as heard:
        with ring.controller() as app:
            reserve(app)
            status, _ = app.add('sechs', '2mbit', 'fd00::2', 'fd00::5', dscp='af41', ceil='4mbit')
            assert status == 201
            before = app.get('/reservations')
            sender = stream(ring, 1, 3)
            heard.reaches(50)
            app.end(signum)
        with sender, ring.controller() as app:
            after = {row['name']: row for row in app.get('/reservations')}
            assert len(after) == 2 and app.events('found') and not app.events('moved')
            for row in before:
                for key in 'rate', 'ceil', 'queue', 'path', 'match', 'from', 'to':
                    assert after[row['name']][key] == row[key]
            check_parts(ring, *after.values())
            status, answer = app.add('more', '14mbit', '10.0.0.1', '10.0.0.3', app='sip')
            assert status == 409 and answer['link'] == '1:1'    # what was promised before counts
            all_arrive(heard, sender, 100)
            ring.set_link(1, False)                             # and it goes on as before
            app.wait('video', lambda row: way(row) == LONG)
            eventually_parts(ring, app, ('video', 'sechs'))


@rooted
@pytest.mark.long
@pytest.mark.parametrize('signum', (signal.SIGTERM, signal.SIGKILL))
@pytest.mark.parametrize('n', (1, 2))
def test_a_switch_restarts(signum, n):
    with Ring(5, patience=60) as ring, ring.controller() as app, \
            Listener(ring, 3, 200) as heard:
        made = reserve(app)
        ring.restart(n, signum)
        until(lambda: (ring.queues(n), ring.flows(n)), wanted=lambda found: found[1] == 1)
        assert way(app.get('/reservations/video')) == way(made)
        check_parts(ring, made)
        with stream(ring, 1, 3) as sender:
            all_arrive(heard, sender, 50)


@rooted
@pytest.mark.long
def test_a_switch_in_the_middle_stays_away(ring):
    """Paths leave it; what it still has goes when it is back."""
    with ring.controller() as app, Listener(ring, 3, 200) as heard:
        reserve(app)
        ring.switches[2].process.send_signal(signal.SIGKILL)
        ring.switches[2].process.wait(60)
        app.wait('video', lambda row: way(row) == LONG)
        with stream(ring, 1, 3) as sender:
            all_arrive(heard, sender, 50)
        ring.switches[2].log.close()
        ring.switches[2].start()
        until(lambda: app.events('switch'), wanted=lambda found: len(found) == 6)
        until(lambda: ring.queues(2), wanted=lambda found: found == {})
        eventually_parts(ring, app)


@rooted
@pytest.mark.long
def test_a_switch_dies_between_the_commits(ring):
    """It has stopped: it takes the bundle's bytes and doesn't answer.  The rest is undone; it is mended
    when it is back."""
    with ring.controller() as app:
        ring.reaches(1, '10.0.0.3')
        ring.switches[2].process.send_signal(signal.SIGSTOP)
        try:
            status, answer = app.add('video', '5mbit', '10.0.0.1', '10.0.0.3', match={'udp_dst': PORT})
        finally:
            ring.switches[2].process.send_signal(signal.SIGCONT)
        assert status == 503 and answer['switch'] == '2', answer
        until(lambda: app.events('switch'), wanted=lambda found: len(found) == 6)
        ring.ready(app, 10)
        check_parts(ring)
        assert way(reserve(app)) == SHORT


@rooted
@pytest.mark.long
def test_the_state_file(tmp_path):
    """Controller and the switch at the beginning restart together: the switch can't tell any more."""
    with Ring(5, state=str(tmp_path / 'state')) as ring:
        with ring.controller() as app:
            made = reserve(app)
            reserve(app, 'gone', 2, 4)
            app.rest('DELETE', '/reservations/gone')
            until(lambda: (tmp_path / 'state').read_text(), wanted=lambda text: '"gone": [\n' in text)
            app.end(signal.SIGKILL)
        ring.restart(1)
        with ring.controller() as app:
            until(lambda: [row['name'] for row in app.get('/reservations')
                           if row['state'] == 'held'], wanted=lambda names: names == ['video'])
            again, = eventually_parts(ring, app)
            assert way(again) == way(made) and again['asked'] == made['asked']


@rooted
@pytest.mark.long
def test_a_host_invents_no_link(ring):
    with ring.controller() as app, ring.host(1) as one, ring.host(3) as three:
        def is_lldp(data):
            return data[12:14] == b'\x88\xcc'
        forged = lldp.Signer().frame(Place(4, 9), 0)
        three.send(forged)
        one.send(one.recv(wanted=is_lldp)[:-20] + bytes(20))
        real = three.recv(wanted=is_lldp)
        three.send(real)                        # its own: a port is no link to itself
        ring.reaches(1, '10.0.0.3')
        found = app.get('/topology')
        assert len(found['links']) == 10 and {host['at'] for host in found['hosts']} >= {'1:1', '3:1'}


# ------------------------------------------------------------------------------------ the page

LAB = """
finish() { set +e; kill $(jobs -p); wait; for n in lab host1 host2 host3 host4 host5; do ip netns del $n; done; }
trap finish EXIT
"""


@rooted
@pytest.mark.long
def test_the_lab_of_the_page(tmp_path):
    """docs/how-to/reservations.md, as it is, but for the namespaces' names"""
    def block(name):
        return topo.sh(os.path.join(topo.REPOSITORY, 'scripts/doc-commands'),
                       os.path.join(topo.REPOSITORY, 'docs/how-to/reservations.md'), name)
    tool = tmp_path / 'bin' / 'ofqos-reserve'
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m ofqos.reserve.cli "$@"\n')
    tool.chmod(0o755)
    prefix = f'oq{os.getpid()}lab'
    script = 'set -e\n' + LAB + block('network') + block('start') + \
        'for try in $(seq 600); do ! grep -q settled events || break; sleep 0.1; done\n' + \
        ''.join(f'echo "== {name}"\n{block(name)}' for name in ('add', 'cut', 'back'))
    script = re.sub(r'(?<= )(lab|host[1-5$])(?=[ ;n]|$)', lambda m: prefix + m[1], script,
                    flags=re.M)
    done = subprocess.run(
        ['bash', '-c', script], cwd=tmp_path, text=True, timeout=300, check=False,
        env=dict(os.environ, PYTHONPATH=PACKAGE, PATH=os.pathsep.join(
            [str(tool.parent), os.path.dirname(topo.binary('datapath/ofdatapath')), os.environ['PATH']])),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    _, added, cut, back = re.split(r'== \w+\n', done.stdout)
    assert 'video: 12mbit from 1:1 to 3:1, held, by 1:2 2:2 3:1' in added
    assert '2:2 to 3:3: 17mbit of 17640kbit promised' in added
    assert 'video: 12mbit from 1:1 to 3:1, held, by 1:3 5:3 4:3 3:1' in cut
    assert 'video: 12mbit from 1:1 to 3:1, held, by 1:2 2:2 3:1' in back and '0 dropped' in back


# -------------------------------------------------------------------------------------- words

def test_names_are_the_switchs_own():
    subprocess.run([sys.executable, os.path.join(topo.REPOSITORY, 'scripts/names-table'), '--check'], check=True)
    assert words.APPS['sip'] == [('udp', 5060, 5061), ('tcp', 5060, 5061)] and words.DSCPS['voice-admit'] == 44
    assert words.PROTOCOLS == {'tcp': 6, 'udp': 17, 'sctp': 132}


def test_matches():
    def made(source, sink, **body):
        return [dict(m) for m in words.matches((words.end(source), words.end(sink)), body)]
    assert made('10.0.0.1', '10.0.0.2') == [
        {'eth_type': 0x800, 'ipv4_src': '10.0.0.1', 'ipv4_dst': '10.0.0.2'}]
    assert made('02:00:00:00:00:0A', '1:1') == [{'eth_src': '02:00:00:00:00:0a'}]
    assert len(made('1:1', '2:1', dscp=['ef', 10])) == 4       # IPv4 and IPv6
    found = made('FD00:0::1', '2:1', match={'tcp_dst': 80}, dscp=46)
    assert found == [{'eth_type': 0x86dd, 'ipv6_src': 'fd00::1', 'ip_proto': 6, 'tcp_dst': 80,
                      'ip_dscp': 46}]
    for body in ({'match': {'tcp_dst': 1, 'ip_proto': 17}}, {'app': 'sip', 'match': {'ip_proto': 6}},
                 {'match': 5}, {'dscp': list(range(40)), 'app': 'sip'}):
        with pytest.raises(ValueError):
            made('1:1', '2:1', **body)


def test_lldp_is_signed_and_young():
    signer, place = lldp.Signer(), Place(0xabc, 7)
    good = signer.frame(place, 100.0)
    assert signer.sender(good, 101) == signer.sender(good, 100) == place
    assert signer.sender(good, 106) is None and signer.sender(good, 99) is None
    assert lldp.Signer().sender(good, 100) is None
    for i in range(14, len(good) - 2):
        changed = good[:i] + struct.pack('B', good[i] ^ 1) + good[i + 1:]
        assert signer.sender(changed, 100) in (None, place)     # never another
    for i in range(len(good)):
        assert signer.sender(good[:i] if i > 14 else good[:14], 100) in (None, place)

