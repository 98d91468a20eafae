# SPDX-License-Identifier: Apache-2.0
"""ofqos-network and twenty stand-ins: steps, canary, two instances.  Needs no root: they meet on loopback."""
import os
import signal
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.app import PACKAGE
from support.rack import Alone
from support.standin import Crowd
from support.topo import build_directory
from support.wait import until

pytest.importorskip('yaml', reason='PyYAML is not installed (Debian: python3-yaml)')
sys.path.append(PACKAGE)
pytestmark = pytest.mark.skipif(not build_directory(), reason='no build with dpctl found')
MANY = 20
MBIT = 1_000_000


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def policy(revision=1, rate='2mbit', more='', many=MANY):
    rows = '\n'.join(f'  - {{id: {n:x}, labels: [{"pilot" if n < 3 else "other"}]}}' for n in range(1, many + 1))
    return f'''revision: {revision}
{more}
profiles:
  small:
    lines:
      - htb class=0,rate=10mbit,ceil=10mbit
      - htb class=10,rate={rate},ceil=10mbit,promise=500ms
      - htb class=20,rate=1mbit,ceil=10mbit
      - htb default=20
      - map then=normal
      - map queue=10,dscp=ef
switches:
{rows}
apply: [{{to: all, ports: {{1-2: small}}}}]
'''


def rates(crowd):
    """{rate of class 10: at how many ports}"""
    found = {}
    for switch in crowd.switches:
        for port in 1, 2:
            request = switch.queues.get((port, 0, 10, 1))
            rate = request.params['rate'] if request else None
            found[rate] = found.get(rate, 0) + 1
    return found


def all_have(crowd, rate):
    until(lambda: crowd.do(rates, crowd), wanted=lambda found: found == {rate * MBIT: 2 * len(crowd.switches)})


def test_many():
    port = free_port()
    with Crowd(MANY, port) as crowd, Alone(policy(), port) as app:
        assert app.wait('in force')['changed'] == MANY
        all_have(crowd, 2)
        assert app.say('status')['dpctl_runs'] <= 4     # of check, and one for all switches
        reconnect(crowd, app)
        one_refuses(crowd, app)
        canary(crowd, app)
        words(app, port)


def reconnect(crowd, app):
    def lose(switch):
        switch.reset()
        switch.cut()
    crowd.do(lambda: [lose(switch) for switch in crowd.switches[:5]])
    app.wait('applied', 5)
    all_have(crowd, 2)


def one_refuses(crowd, app):
    commits = crowd.do(lambda: [switch.commits for switch in crowd.switches])
    crowd.switches[7].refuses = True
    found = app.apply(policy(2, '3mbit'), good=False)
    assert found['error'].startswith('s8: bundle refused: MSG_FAILED') and found['unsure'] == []
    all_have(crowd, 2)
    assert sum(crowd.do(lambda: [switch.commits for switch in crowd.switches])) >= sum(commits) + 2
    assert not any(row['steps'] for row in app.say('diff')['switches'])
    crowd.switches[7].refuses = False
    assert app.say('status')['revision'] == 1


def canary(crowd, app):
    words = 'canary: {label: pilot, watch: 2s}'
    # One of the two pilots breaks a promise; another switch does
    for number, rate, who in (3, 4, 0), (4, 5, 7):
        app.write(policy(number, f'{rate}mbit', words))
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(app.say, 'apply', app.file, good=bool(who))
            app.wait('canary', number - 2)
            crowd.do(crowd.switches[who].promise)
            found = done.result()
        if who:
            assert len(found['changed']) == MANY and found['seconds'] >= 2
            all_have(crowd, 5)
        else:
            assert 'the canary: s1 breaks a promise: port 1, class 10, out: 1000000 of 2000000' in found['error']
            all_have(crowd, 2)
    said = app.events('canary')
    assert [sorted(event['switches']) for event in said] == [['s1', 's2']] * 2


def words(app, port):
    """What people see"""
    app.write(policy(5, '6mbit', 'canary: {label: pilot, watch: 1s}', MANY + 1))
    said = app.text('plan', app.file)
    assert said.startswith('s1* s2* s3 ') and 's14: 2 steps\n    qos-htb cmd=change,port=1,class=10,rate=6mbit' in said
    assert 'away, they get it when they come: s15' in said and '* gets it first' in said
    said = app.text('apply', app.file)
    assert 'revision 5 is in force: 20 switches changed, 0 were so, in' in said
    said = app.text('status')
    assert 'in force here' in said and '1 away, 20 same\naway: s15\nbefore: revision 1, ' in said
    assert f'before: revision 4, {time.strftime("%Y-")}' in said
    assert 'nothing to change' in app.text('diff')
    assert 'revision 6 is in force: 20 switches changed' in app.text('rollback')
    assert 'ofqos-network: ' in app.text('rollback', '99') and 'no such file' in app.text('plan', '/none').lower()
    assert 'runs already' in app.text('run', '--listen', '127.0.0.1:0')
    app.state += '2'
    assert f'tcp:127.0.0.1:{port}: Address already in use' in app.text('run', '--listen', f'127.0.0.1:{port}')
    assert 'HOST:PORT is, such as' in app.text('run', '--listen', '6653')


def test_a_switch_dies_in_the_first_step():
    """Nobody has refused: it is made again."""
    port = free_port()
    with Crowd(4, port) as crowd:
        crowd.switches[2].dies = True
        with Alone(policy(many=4), port) as app:
            said = app.wait('in force')
            first = app.events('refused')[0]
            assert first['why'].startswith('s3: ') and first['unsure'] == ['s3'] and said['changed'] == 4
            all_have(crowd, 2)


def test_a_revision_that_cannot_be_kept():
    """A full disk, say: then no switch keeps it either."""
    port = free_port()
    with Crowd(3, port) as crowd, Alone(policy(many=3), port) as app:
        app.wait('in force')
        all_have(crowd, 2)
        in_the_way = os.path.join(app.state, 'revisions', f'2.json.{app.process.pid}.part')
        os.mkdir(in_the_way)
        found = app.apply(policy(2, '3mbit', many=3), good=False)
        assert "the revision can't be kept" in found['error'] and found['unsure'] == []
        all_have(crowd, 2)
        assert app.say('status')['revision'] == 1
        os.rmdir(in_the_way)
        assert len(app.say('apply', app.file)['changed']) == 3
        all_have(crowd, 3)


def test_two_instances():
    ports = free_port(), free_port()
    with Crowd(4, *ports) as crowd, Alone(policy(1, many=4), ports[0]) as first:
        first.wait('in force')
        with Alone(policy(1, '9mbit', many=4), ports[1]) as second:
            # Of the same revision: the one that is there stays
            second.wait('switch', 4)
            until(lambda: second.say('status')['why'], wanted=lambda why: why == 'another instance is in force')
            assert 'another instance is in force' in second.say('apply', second.file, good=False)['error']
            assert not second.events('active')
            all_have(crowd, 2)
            first.process.kill()
            first.process.wait()
            second.wait('active')
            second.wait('in force')
            all_have(crowd, 9)
            with Alone(policy(2, '4mbit', many=4), ports[0]) as newer:
                newer.wait('in force')      # a newer policy takes over at once
                second.wait('standby')
                all_have(crowd, 4)
                crowd.do(lambda: [switch.cut() for switch in crowd.switches])
                newer.wait('switch', 8)
                assert 'revision 2 is in force elsewhere' in until(
                    lambda: second.say('status')['why'], wanted=lambda why: 'elsewhere' in why)
                all_have(crowd, 4)
                newer.process.kill()
                newer.process.wait()
            # The older one never goes back to its own
            assert not second.say('status')['active']
            assert second.say('apply', second.file, good=False)
            all_have(crowd, 4)
            second.apply(policy(3, '5mbit', many=4))
            all_have(crowd, 5)


@pytest.mark.parametrize('member', [False, True])
def test_a_switch_that_claims_a_generation(member):
    """It says that the greatest id is in force and refuses MASTER.  Outside the policy it counts for nothing; within
    it for itself: the instance goes on at the others, and there as soon as it answers as it should."""
    port = free_port()
    with Crowd(4, port) as crowd, Alone(policy(many=4 if member else 3), port) as app:
        if member:
            app.wait('in force')
        rogue = crowd.switches[3]
        rogue.generation = 0x7ffffff000000000
        crowd.do(rogue.cut)
        if member:
            assert 'older than its master' in app.wait('refused')['why']
            crowd.do(lambda: [(switch.reset(), switch.cut()) for switch in crowd.switches[:3]])
            app.wait('applied', 3)
            rogue.generation = None
            crowd.do(lambda: (rogue.reset(), rogue.cut()))
            app.wait('applied', 4)
            assert len(app.apply(policy(2, '3mbit', many=4))['changed']) == 4
        else:
            assert app.wait('in force')['changed'] == 3
            time.sleep(3)                   # a beat
            assert len(app.apply(policy(2, '3mbit', many=3))['changed']) == 3
            assert not rogue.queues and rogue.generation == 0x7ffffff000000000
        assert app.say('status')['active'] and not app.events('standby')


def threads(app):
    return len(os.listdir(f'/proc/{app.process.pid}/task'))


def test_silent_connections():
    """They take no thread, end within the time of a hand-shake, and are told of; a switch comes meanwhile."""
    port = free_port()
    with Alone(policy(many=1), port) as app:
        until(lambda: socket.create_connection(('127.0.0.1', port)).close() or True, not_yet=OSError)
        before = threads(app)
        silent = [socket.create_connection(('127.0.0.1', port)) for _ in range(300)]
        with Crowd(1, port):
            app.wait('in force')
        assert threads(app) < before + 10
        for one in silent:
            one.settimeout(30)
            assert len(one.recv(100)) >= 0                          # a hello
            until(lambda one=one: one.recv(100) == b'', not_yet=ConnectionError)
            one.close()
        said = [event['why'] for event in app.events('turned away')]
        assert 1 < len(said) < 30 and any('no hand-shake within 10 s' in why for why in said)


def test_silent_switches_delay_no_other():
    """More of them than are looked at at a time; the others have their queues again before these are given up, five
    seconds after the next beat, and are told all the while that the instance is in force."""
    port = free_port()
    with Crowd(40, port) as crowd, Alone(policy(many=40), port) as app:
        app.wait('in force')
        there = crowd.switches[20:]

        def lose():
            for switch in crowd.switches:
                switch.silent = switch not in there
                switch.reset()
                switch.cut()
        crowd.do(lose)
        began = time.monotonic()
        app.wait('applied', 20)
        assert time.monotonic() - began < 5
        before = crowd.do(lambda: [switch.generation for switch in there])
        until(lambda: crowd.do(lambda: [switch.generation for switch in there]), seconds=6,
              wanted=lambda found: all(now > was for now, was in zip(found, before)))
        assert crowd.do(lambda: all((2, 0, 10, 1) in switch.queues for switch in there)) and not app.events('standby')


def test_an_impostor_is_told_of():
    """The switch that was there first stays."""
    port = free_port()
    with Crowd(2, port) as crowd, Alone(policy(many=2), port) as app:
        app.wait('in force')
        with Crowd(1, port) as impostors:
            assert 'switch 0000000000000001 is connected from tcp:127.0.0.1:' in app.wait('turned away')['why']
            assert app.apply(policy(2, '3mbit', many=2))['changed'] == ['s1', 's2']
            all_have(crowd, 3)
            assert not impostors.do(rates, impostors).get(3 * MBIT)


def in_force(app):
    return app.say('status')['generation'][:8], app.say('status')['revision']


@pytest.mark.parametrize('end', ['refused', 'canary', 'commit', 'kept', 'stopped', 'parted'])
def test_the_reserve_takes_over(end):
    """After a revision that a switch refused, in the middle of a step, and when the first one only stands still or is
    cut off: never is a revision in the generation id that isn't in force."""
    ports = free_port(), free_port()
    with Crowd(3, *ports) as crowd, Alone(policy(30, many=3), ports[0]) as first:
        first.wait('in force')
        until(lambda: crowd.do(lambda: crowd.switches[0].generation), wanted=lambda found: (found or 0) >> 32 == 30)
        with Alone(policy(30, many=3), ports[1]) as second:
            second.wait('switch', 3)
            rate, revision = leave(crowd, first, second, ports[0], end)
            second.wait('active')
            second.wait('in force')
            all_have(crowd, rate)
            assert in_force(second) == (f'{revision:08x}', revision)
            if end in ('stopped', 'parted'):
                first.process.send_signal(signal.SIGCONT)
                crowd.join()
                first.wait('standby')
                assert second.say('status')['active'] and not second.events('standby')


def leave(crowd, first, second, port, end):
    """The first instance's end -> the rate and revision that the second one is to put in force"""
    found = 2, 30
    if end == 'refused':
        crowd.switches[1].refuses = True
        assert 's2: ' in first.apply(policy(31, '3mbit', many=3), good=False)['error']
        crowd.switches[1].refuses = False
        time.sleep(3)                       # a beat
    elif end == 'kept':
        first.apply(policy(31, '3mbit', many=3))
        second.write(policy(31, '3mbit', many=3))
        second.process.send_signal(signal.SIGHUP)
        found = 3, 31
    elif end in ('canary', 'commit'):
        first.write(policy(31, '3mbit', 'canary: {label: pilot, watch: 60s}' * (end == 'canary'), many=3))
        crowd.switches[1].stalls = end == 'commit'
        first.process.send_signal(signal.SIGHUP)
        until(lambda: crowd.do(rates, crowd), wanted=lambda found: 3 * MBIT in found)
        time.sleep(3)
        crowd.switches[1].stalls = False
    if end == 'parted':
        crowd.part(port)
    else:
        first.process.send_signal(signal.SIGSTOP if end == 'stopped' else signal.SIGKILL)
    return found


def test_a_refused_newcomer_leaves_the_switches():
    """One with a newer file takes over, is refused, and has nothing else: the one before has them again."""
    ports = free_port(), free_port()
    with Crowd(3, *ports) as crowd, Alone(policy(30, many=3), ports[0]) as first:
        first.wait('in force')
        crowd.switches[1].refuses = True
        with Alone(policy(31, '3mbit', many=3), ports[1]) as newer:
            assert newer.wait('refused')['why'].startswith('s2: ')
            newer.wait('standby')
            first.wait('active', 2)
            crowd.do(crowd.switches[0].reset)
            crowd.do(crowd.switches[0].cut)
            all_have(crowd, 2)
            assert first.say('status')['active'] and not newer.say('status')['active']
