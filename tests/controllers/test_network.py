# SPDX-License-Identifier: Apache-2.0
"""ofqos-network with real daemons: their kernel queues, and who changes them."""
import contextlib
import json
import os
import signal
import struct
import sys
import threading
import time

import pytest

from support import tc, topo
from support.app import PACKAGE
from support.fakeswitch import run
from support.rack import Rack
from support.wait import until

pytest.importorskip('yaml', reason='PyYAML is not installed (Debian: python3-yaml)')
sys.path.append(PACKAGE)
from ofqos import parse_dump, parse_ports, wire  # noqa: E402
from ofqos.network.answers import rows_of  # noqa: E402
from ofqos.network.dpctl import Dpctl  # noqa: E402
from ofqos.network.policy import FILE, Profile  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')
MBIT = 1_000_000


def policy(revision=1, rate='2mbit', more='', lines='', ports='{1: small}', map_='queue=10,dscp=ef'):
    return f'''revision: {revision}
{more}
profiles:
  small: {{lines: ['htb class=0,rate=10mbit', 'htb class=10,rate={rate},ceil=10mbit', 'htb class=20,rate=1mbit'{lines}]}}
maps:
  voice: {{rules: ['{map_}'], then: normal}}
switches:
  - {{id: 1, name: one, labels: [pilot]}}
  - {{id: 2, name: two}}
  - {{id: 3, name: three}}
apply:
  - {{to: all, ports: {ports}, map: voice}}
'''


def wanted(rate=2 * MBIT):
    return {10: rate, 20: MBIT}


def has(rack, n, rate=2 * MBIT):
    until(lambda: rack.rates(n), wanted=lambda found: {k: v for k, v in found.items() if k < 100} == wanted(rate))


def marks(rack, n):
    """Flows of the map"""
    said = rack.switches[n].dpctl('qos-map', 'show').stdout
    return sum('queue=10' in line for line in said.splitlines())


def test_life():
    """On three switches; again on one that was killed, and after a restart; drift, plan, refusal, rollback."""
    with Rack(3) as rack:
        with rack.network(policy()) as app:
            assert app.wait('in force')['changed'] == 3
            for n in 1, 2, 3:
                has(rack, n)
                assert marks(rack, n) == 1
                same = rack.switches[n].dpctl('qos-map', 'replace', 'set=network', 'queue=10,dscp=ef', 'then=normal')
                assert 'nothing to change' in same.stdout
            assert app.states() == {'one': 'same', 'two': 'same', 'three': 'same'}
            drift(rack, app)
            killed(rack, app)
            changes(rack, app)
            refused(rack, app)


def drift(rack, app):
    tc.tc(rack.switch_ns, 'class', 'change', 'dev', 'r1a', 'parent', '1:ffff', 'classid', '1:a', 'htb', 'rate',
          '3mbit', 'ceil', '10mbit')
    assert app.wait('mended')['switch'] == 'one'
    has(rack, 1)
    rack.switches[2].dpctl('qos-htb', 'cmd=add,port=1,class=30,rate=1mbit')
    app.wait('mended', 2)
    has(rack, 2)
    assert not app.say('diff')['switches'][0]['steps']


def killed(rack, app):
    rack.restart(3, signal.SIGTERM)         # takes its queues and flows along
    app.wait('applied')
    has(rack, 3)
    assert marks(rack, 3) == 1
    rack.restart(3, signal.SIGKILL)         # leaves the queues
    app.wait('applied', 2)
    has(rack, 3)


def changes(rack, app):
    app.write(policy(2, '4mbit'))
    plan = app.say('plan', app.file)
    steps = [row['steps'] for row in plan['switches']]
    assert steps[1:] == [['qos-htb cmd=change,port=1,class=10,rate=4mbit,ceil=10mbit']] * 2
    assert len(steps[0]) == 1 and steps[0][0].startswith(steps[1][0])   # and what tc has left of its own
    has(rack, 1)
    done = app.say('apply', app.file)
    assert sorted(done['changed']) == ['one', 'three', 'two'] and done['away'] == []
    has(rack, 3, 4 * MBIT)
    assert app.say('apply', app.file)['changed'] == []
    app.write(policy(3, '5mbit'))
    app.process.send_signal(signal.SIGHUP)
    app.wait('in force', 4)
    has(rack, 2, 5 * MBIT)
    assert sorted(app.say('rollback')['changed']) == ['one', 'three', 'two']
    has(rack, 1, 4 * MBIT)
    found = app.say('status')
    assert found['revision'] == 4 and [one['revision'] for one in found['revisions']] == [1, 2, 3, 4]
    assert app.say('rollback', '1')['revision'] == 5
    has(rack, 2)
    assert 'not kept: 1, 2, 3, 4' in app.say('rollback', '77', good=False)['error']


def refused(rack, app):
    assert 'is older than 5' in app.apply(policy(3), good=False)['error']
    assert 'in force with other contents' in app.apply(policy(5, '6mbit'), good=False)['error']
    wrong = app.apply(policy(6, '6mbit', lines=", 'htb class=30,rat=1mbit'"), good=False)
    assert 'unknown key rat' in wrong['error'] and 'the lines of profiles.small:4' in wrong['error']
    # The kernel of one refuses: somebody else's qdisc is where the port's is to be
    tc.tc(rack.switch_ns, 'qdisc', 'add', 'dev', 'r2b', 'root', 'handle', '77:', 'pfifo', 'limit', '5')
    found = app.apply(policy(6, '6mbit', ports='{1: small, 2: small}'), good=False)
    assert 'two' in found['error'] and found['unsure'] == []
    for n in 1, 2, 3:
        has(rack, n)
        assert not [k for k in rack.rates(n, 'b') if k < 100]
    assert app.states() == {'one': 'same', 'two': 'same', 'three': 'same'}
    tc.tc(rack.switch_ns, 'qdisc', 'del', 'dev', 'r2b', 'root')
    assert len(app.say('apply', app.file)['changed']) == 3
    has(rack, 2, 6 * MBIT)
    for n in 1, 2, 3:
        assert {k: v for k, v in rack.rates(n, 'b').items() if k < 100} == wanted(6 * MBIT)


def whole(rack, n):
    """All of a switch's queues as requests, default classes and the map's flows"""
    with rack.switches[n].connect() as conn:
        ask = asks(conn)
        entries = parse_dump(rows_of((0xffff, 1), ask(wire.ask_dump(0))))
        trees = parse_ports(rows_of((0xffff, 4), ask(wire.ask(wire.QOS_PORTS, 0))))
        flows = [(f['table_id'], f['priority'], f['cookie'], f['match'], f['instructions']) for f in conn.flows()]
    return (sorted(str(entry.config) for entry in entries), [(t.port, t.direction, t.default_class) for t in trees],
            sorted(map(str, flows)))


RICH = '''revision: {revision}
profiles:
  rich:
    lines: {lines}
switches: [{{id: 1}}, {{id: 2}}, {{id: 3}}]
apply:
  - {{to: all, ports: {{{ports}}}}}
'''
ONE = """['htb class=0,rate=20mbit,ceil=20mbit', 'htb class=10,name=voice,rate=30%,ceil=100%,promise=1s',
      'htb class=20,name=rest,rate=50%,ceil=90%,prio=3', 'htb class=21,parent=rest,rate=1mbit,burst=9kb',
      'htb default=21', 'pfifo class=voice,limit=33', 'tbf class=21,rate=900kbit,burst=3kb,limit=30kb',
      'map then=normal', 'map queue=voice,dscp=ef,remark=af41', 'map queue=21,app=ssh', in,
      'htb class=0,rate=7mbit', 'htb class=5,rate=2mbit', 'bfifo class=5,limit=9kb']"""
OTHER = """['htb class=0,rate=9mbit', 'htb class=10,rate=1mbit,prio=2', 'htb class=30,parent=10,rate=500kbit',
      'htb default=30', 'bfifo class=30,limit=5kb', 'map then=normal', 'map queue=10,dscp=ef', 'map queue=30,dscp=cs1']"""


def test_taken_back_as_it_was():
    """A change of everything is committed by two and refused by the third's kernel."""
    with Rack(3) as rack, rack.network(RICH.format(revision=1, lines=ONE, ports='1: rich')) as app:
        assert app.wait('in force')['changed'] == 3
        before = [whole(rack, n) for n in (1, 2, 3)]
        assert len(before[0][0]) > 10 and len(before[0][2]) > 4
        tc.tc(rack.switch_ns, 'qdisc', 'add', 'dev', 'r2b', 'root', 'handle', '77:', 'pfifo', 'limit', '5')
        for lines in OTHER, "['none']":
            found = app.apply(RICH.format(revision=2, lines=lines, ports='1: rich, 2: twin').replace(
                '  rich:', "  twin: {lines: ['htb class=0,rate=1mbit']}\n  rich:"), good=False)
            assert found['error'].startswith('s2: ') and found['unsure'] == []
            assert [whole(rack, n) for n in (1, 2, 3)] == before
        assert not any(row['steps'] for row in app.say('diff')['switches'])
        tc.tc(rack.switch_ns, 'qdisc', 'del', 'dev', 'r2b', 'root')
        assert len(app.say('apply', app.file)['changed']) == 3
        assert whole(rack, 3)[0] != before[2][0] and not any('port=1,' in line for line in whole(rack, 3)[0])


@contextlib.contextmanager
def traffic(rack, n):
    """Three Mbit/s with DSCP EF into port 2 of a switch, which floods it out of port 1"""
    over, frame = threading.Event(), topo.eth(topo.udp4(bytes(1000), tos=46 << 2))

    def send():
        with topo.Wire(rack.switch_ns, f'x{n}b') as wire:
            while not over.wait(0.01):
                for _ in range(4):
                    wire.send(frame)
    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def asks(conn):
    """What Dpctl asks, from a switch by its own connection"""
    def ask(request):
        kind, = struct.unpack_from('!H', request, 8)
        return [wire.message(wire.T_MULTIPART_REPLY, 0, request[8:10] + bytes(6) + part)
                for part in conn.multipart_parts(kind, request[16:])]
    return ask


def test_profiles_mean_what_dpctl_means():
    """For each shipped profile, on an empty port and over another one: the steps of dpctl --dry-run."""
    names = sorted(name for name in os.listdir(f'{topo.REPOSITORY}/docs/examples') if name.endswith('.qos'))
    render = Dpctl(topo.binary('utils/dpctl/dpctl'))
    with topo.Topology(ports=2) as t, topo.Switch(t) as switch, switch.connect() as conn:
        async def ask(request):
            return asks(conn)(request)
        switch.dpctl('qos-htb', 'cmd=add,port=2,class=0,rate=7mbit')
        switch.dpctl('qos-htb', 'cmd=add,port=2,class=2,rate=1mbit,ceil=7mbit')
        switch.dpctl('qos-pfifo', 'cmd=add,port=2,class=2,limit=7')
        for name in names:
            path = f'{topo.REPOSITORY}/docs/examples/{name}'
            with open(path, encoding='utf-8') as f:
                profile = Profile(name, f.read(), (), name)
            for port in 'port=1', 'port=2', 'port=1,2':
                said = json.loads(switch.dpctl('--json', '--dry-run', 'qos-apply', path, port).stdout)
                made = run(render.render(('qos-apply', FILE, port), profile, ask))
                assert made.steps == said['steps'] and len(made.messages) == len(made.steps) > 0, name
    assert len(names) >= 9


def test_canary():
    """A new policy throttles the queue behind its promise: the pilot tells, and nobody has it then."""
    # Nothing leaves of a slower scheduler in the queue, whatever HTB gives it
    slow = ", 'tbf class=10,rate=200kbit,burst=2kb,limit=100kb'"
    more = 'canary: {label: pilot, watch: 20s}'
    with Rack(3) as rack, rack.network(policy(1, '2mbit,promise=500ms')) as app:
        assert app.wait('in force')['changed'] == 3
        has(rack, 1)
        with traffic(rack, 1):
            time.sleep(1)
            before = tc.qdiscs(rack.switch_ns, 'r2a')
            found = app.apply(policy(2, '2mbit,promise=500ms', more, slow), good=False)
            assert 'the canary: one breaks a promise: port 1, class 10, out' in found['error']
            assert tc.qdiscs(rack.switch_ns, 'r2a').keys() == before.keys()
        assert 'tbf' not in tc.tc(rack.switch_ns, 'qdisc', 'show', 'dev', 'r1a')
        assert app.events('canary')[0]['switches'] == ['one'] and app.say('status')['revision'] == 1
        assert app.states() == {'one': 'same', 'two': 'same', 'three': 'same'}
        more = 'canary: {label: pilot, watch: 1s}'
        assert len(app.apply(policy(3, '3mbit,promise=500ms', more))['changed']) == 3
        has(rack, 2, 3 * MBIT)


@pytest.mark.long
def test_two_instances():
    """The reserve waits, takes over from one that was killed, and mends with the same file."""
    both = 'tcp:127.0.0.1:6653', 'tcp:127.0.0.1:6654'
    with Rack(3, both) as rack, rack.network(policy()) as first:
        first.wait('in force')
        with rack.network(policy(), listen=6654) as second:
            second.wait('switch', 3)
            tc.tc(rack.switch_ns, 'class', 'del', 'dev', 'r1a', 'classid', '1:14')
            first.wait('mended')
            has(rack, 1)
            assert not second.events('mended') and not second.events('active')
            first.process.kill()
            first.process.wait()
            second.wait('active')
            assert second.wait('in force')['changed'] == 0      # it is all there
            tc.tc(rack.switch_ns, 'class', 'del', 'dev', 'r2a', 'classid', '1:14')
            second.wait('mended')
            has(rack, 2)


def test_report_and_alone():
    """on_drift: report says what is missing; apply --listen does it without an instance."""
    with Rack(3) as rack:
        with rack.network(policy(1, more='on_drift: report')) as app:
            app.wait('in force')
            tc.tc(rack.switch_ns, 'class', 'del', 'dev', 'r1a', 'classid', '1:14')
            said = app.wait('drifted')
            assert said['switch'] == 'one' and said['steps'] == [
                'qos-htb cmd=add,port=1,class=20,rate=1mbit']
            assert 20 not in rack.rates(1) and app.states()['one'] == 'drifted'
            assert app.say('diff')['switches'][0]['steps'] == said['steps']
            assert app.say('apply', app.file)['changed'] == ['one']
            has(rack, 1)
            app.process.terminate()
            app.process.wait()
            app.state += '2'            # that of somebody else, who has never applied anything
            app.write(policy(2, '7mbit'))
            found = app.say('plan', app.file, '--listen', '127.0.0.1:6653')
            assert [len(row['steps']) for row in found['switches']] == [1, 1, 1] and found['away'] == []
            done = app.say('apply', app.file, '--listen', '127.0.0.1:6653')
            assert len(done['changed']) == 3
            for n in 1, 2, 3:
                has(rack, n, 7 * MBIT)
