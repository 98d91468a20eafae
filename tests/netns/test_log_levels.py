# SPDX-License-Identifier: Apache-2.0
"""`dpctl log`: which lines the switch logs, changed while it runs; LOG and LOG_SET on the wire."""
import json
import struct

import pytest
from support import of13
from support.status import QOSF, wait_until
from support.topo import Switch, Topology

LOG_SET, LOG = 9, 6
LEVELS = {3: 'error', 4: 'warning', 5: 'notice', 6: 'info', 7: 'debug'}


@pytest.fixture
def switch():
    with Topology(1) as topo, Switch(topo) as s:
        yield s


def ask(conn):
    """-> where to, lost, {module: (level, then, seconds, lines, left out)}"""
    body = struct.pack('!II', QOSF, LOG)
    reply = b''.join(part[8:] for part in conn.multipart_parts(of13.MP_EXPERIMENTER, body))
    to, lost = struct.unpack_from('!16sQ', reply)
    modules = {}
    for name, level, then, seconds, lines, left in struct.iter_unpack('!16sBB2xIQQ', reply[24:]):
        modules[name.rstrip(b'\0').decode()] = (LEVELS[level], LEVELS[then], seconds, lines, left)
    return to.rstrip(b'\0').decode(), lost, modules


def set_levels(text, seconds=0):
    """A message's kind and body"""
    return of13.EXPERIMENTER, struct.pack('!III', QOSF, LOG_SET, seconds) + text.encode()


def test_levels_at_run_time(switch):
    shown = json.loads(switch.dpctl('--json', 'log').stdout)
    assert shown['to'] == 'stderr'
    assert shown['lost'] == 0
    assert {m['level'] for m in shown['modules']} == {'notice'}
    assert {'conn', 'flow', 'port', 'qos'} <= {m['module'] for m in shown['modules']}
    switch.dpctl('log', 'conn=debug,flow=info', 'for=1h')
    assert ' notice: daemon: unix:' in switch.output()
    assert ': log levels: conn=debug,flow=info for 3600 s\n' in switch.output()
    now = {m['module']: m for m in json.loads(switch.dpctl('--json', 'log').stdout)['modules']}
    assert now['conn']['level'] == 'debug'
    assert now['conn']['then'] == 'notice'
    assert 3500 < now['conn']['seconds'] <= 3600
    assert now['qos']['level'] == 'notice'
    assert 'seconds' not in now['qos']
    table = switch.dpctl('log').stdout
    assert 'debug (3' in table
    assert ', then notice)' in table
    switch.dpctl('log', 'all=warning')
    with switch.connect() as conn:
        to, lost, modules = ask(conn)
        assert (to, lost) == ('stderr', 0)
        assert {m[:3] for m in modules.values()} == {('warning', 'warning', 0)}
        conn.ok(*set_levels('flow=debug', 1))
        assert ask(conn)[2]['flow'][:2] == ('debug', 'warning')
        wait_until(lambda: ask(conn)[2]['flow'][0] == 'warning', 'the level from before')


def test_wrong_levels(switch):
    for words, says in ((['con=debug'], "there is no module 'con': did you mean conn?"),
                        (['conn=dbg'], "there is no level 'dbg': did you mean debug?"),
                        (['all=debug', 'for=2d'], 'for= must be a time such as 60s, 5m or 1h'),
                        (['for=60s'], 'write which levels'),
                        (['conn=debug', 'for=25h'], 'at most 86400 seconds')):
        done = switch.dpctl('log', *words, check=False)
        assert done.returncode
        assert says in done.stderr
    with switch.connect() as conn:
        assert {m[0] for m in ask(conn)[2].values()} == {'notice'}


def test_a_slave_sets_no_levels(switch):
    with switch.connect() as conn:
        conn.role(of13.ROLE_SLAVE, 1)
        conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_IS_SLAVE, *set_levels('conn=debug'))
        assert {m[0] for m in ask(conn)[2].values()} == {'notice'}
