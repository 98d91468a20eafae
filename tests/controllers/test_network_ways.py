# SPDX-License-Identifier: Apache-2.0
"""How ofqos-network and real switches come together: TLS, switches that wait for controllers, role: equal; and what
is left of a step in which it was killed."""
import os
import signal
import time

import pytest

from support import pki, tc
from support.rack import Instance, Rack
from support.topo import Switch, dpctl
from support.wait import until

pytest.importorskip('yaml', reason='PyYAML is not installed (Debian: python3-yaml)')

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')
MBIT = 1_000_000
MASTER = 2


def policy(revision=1, rate='2mbit', more=''):
    ids = ''.join(f'  - {{id: {n}, labels: [{label}]}}\n' for n, label in ((1, 'pilot'), (2, 'other')))
    return f'''revision: {revision}
{more}
profiles:
  small: {{lines: ['htb class=0,rate=10mbit', 'htb class=10,rate={rate},ceil=10mbit']}}
switches:
{ids}apply:
  - {{to: all, ports: {{1: small}}}}
'''


def has(rack, n, rate=2 * MBIT):
    until(lambda: rack.rates(n).get(10), wanted=lambda found: found == rate)


def test_tls(tmp_path):
    """Over TLS switches get their queues; one of another authority's does not come in."""
    if 'no TLS' in dpctl('--ca-cert=x', 'tls:127.0.0.1', 'features', check=False).stderr:
        pytest.skip('this build has no TLS')
    authority = pki.Authority(tmp_path, 'ours')
    own, theirs = authority.identity('controller'), authority.identity('switch')
    stranger = pki.Authority(tmp_path, 'foreign').identity('stranger').trusting(authority.ca)
    words = own.options()
    with Rack(1, ('tls:127.0.0.1:6653', *theirs.options())) as rack, \
            rack.network(policy(), words=words) as app, \
            Switch(rack, 'tls:127.0.0.1:6653', '--max-backoff=1', *stranger.options(), dpid=f'{2:016x}') as other:
        assert app.wait('in force')['changed'] == 1
        has(rack, 1)
        until(lambda: 'certificate' in other.output().lower() or 'tls' in other.output().lower())
        assert 'the switch at tls:127.0.0.1:' in app.wait('turned away')['why']
        assert {row['name']: row['connected'] for row in app.say('status')['switches']} == {'s1': True, 's2': False}
        assert len(app.apply(policy(2, '3mbit'))['changed']) == 1
        has(rack, 1, 3 * MBIT)


def test_it_connects_to_switches():
    """Two that wait for controllers; one is killed, and is connected to again."""
    words = [word for n in (1, 2) for word in ('--connect', f'127.0.0.1:670{n}')]
    with Rack(2, lambda n: (f'ptcp:670{n}:127.0.0.1',)) as rack, rack.network(policy(), words=words) as app:
        assert app.wait('in force')['changed'] == 2
        for n in 1, 2:
            has(rack, n)
        rack.restart(2, signal.SIGTERM)
        app.wait('applied')
        has(rack, 2)
        assert [row['steps'] for row in app.say('diff')['switches']] == [[], []]


def test_it_connects_by_tls_alone(tmp_path):
    """With a key it never talks to a switch in clear; a switch of another authority is none."""
    if 'no TLS' in dpctl('--ca-cert=x', 'tls:127.0.0.1', 'features', check=False).stderr:
        pytest.skip('this build has no TLS')
    authority = pki.Authority(tmp_path, 'ours')
    own, theirs = authority.identity('controller'), authority.identity('switch')
    stranger = pki.Authority(tmp_path, 'foreign').identity('stranger').trusting(authority.ca)
    words = [word for n in (1, 2, 3) for word in ('--connect', f'127.0.0.1:670{n}')]
    kinds = {1: ('ptls:6701:127.0.0.1', *theirs.options()), 2: ('ptcp:6702:127.0.0.1',),
             3: ('ptls:6703:127.0.0.1', *stranger.options())}
    with Rack(3, kinds.get) as rack, rack.network(policy(), words=[*words, *own.options()]) as app:
        assert app.wait('in force')['changed'] == 1
        has(rack, 1)
        time.sleep(2)
        assert {row['name']: row['connected'] for row in app.say('status')['switches']} == {'s1': True, 's2': False}


def test_a_switch_that_stalled_is_connected_to_again():
    """Stopped for longer than an answer may take."""
    with Rack(1, lambda n: ('ptcp:6701:127.0.0.1',)) as rack, \
            rack.network(policy(), words=('--connect', '127.0.0.1:6701')) as app:
        assert app.wait('in force')['changed'] == 1
        rack.switches[1].process.send_signal(signal.SIGSTOP)
        assert 'no answer' in app.wait('switch away')['why']
        rack.switches[1].process.send_signal(signal.SIGCONT)
        app.wait('switch', 2)
        tc.tc(rack.switch_ns, 'class', 'del', 'dev', 'r1a', 'classid', '1:a')
        has(rack, 1)


def test_role_equal():
    """Beside a controller that is master and stays so, while queues are set and mended."""
    with Rack(2) as rack, rack.switches[1].connect() as one, rack.switches[2].connect() as two:
        for conn in one, two:
            assert conn.role(MASTER, 5) == (MASTER, 5)
        with rack.network(policy(more='role: equal')) as app:
            assert app.wait('in force')['changed'] == 2
            for n in 1, 2:
                has(rack, n)
            tc.tc(rack.switch_ns, 'class', 'del', 'dev', 'r1a', 'classid', '1:a')
            app.wait('mended')
            has(rack, 1)
            assert len(app.apply(policy(2, '3mbit', 'role: equal'))['changed']) == 2
            for conn in one, two:
                assert conn.role(0) == (MASTER, 5)


@pytest.mark.parametrize('goes_on', [False, True])
def test_killed_in_the_middle_of_a_step(goes_on):
    """The canary has the new policy, the other switch the one before.  The next start takes the canary back to what
    was in force; with the new file it brings the other one there."""
    with Rack(2) as rack, rack.network(policy()) as app:
        assert app.wait('in force')['changed'] == 2
        app.write(policy(2, '3mbit', 'canary: {label: pilot, watch: 600s}'))
        app.process.send_signal(signal.SIGHUP)
        app.wait('canary')
        has(rack, 1, 3 * MBIT)
        has(rack, 2)
        app.process.kill()
        app.process.wait()
        text = policy(2, '3mbit', 'canary: {label: pilot, watch: 1s}') if goes_on else None
        with Instance(rack.switch_ns, app.directory, text) as again:
            again.wait('in force' if goes_on else 'applied')
            for n in 1, 2:
                has(rack, n, (3 if goes_on else 2) * MBIT)
            until(again.states, wanted=lambda found: set(found.values()) == {'same'})
            assert again.say('status')['revision'] == (2 if goes_on else 1)
