# SPDX-License-Identifier: Apache-2.0
"""The example that reserves a rate on congested ports, with a link that loses packets."""
import contextlib
import importlib
import json
import os
import sys
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import tc, topo  # noqa: E402
from support.app import EXAMPLES, PACKAGE  # noqa: E402
from support.link import Link  # noqa: E402
from support.load import Cbr  # noqa: E402
from support.wait import until  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')
PROTECTED, OTHERS = 60001, 60002
MBIT = 1_000_000


def frame(dport):
    return topo.eth(topo.udp4(bytes(1000), dport=dport))


def flood(t, dport, mbit, seconds=20):
    """UDP to this port from host 1"""
    return Cbr(t, 1, (frame(dport), mbit * MBIT / 8 / len(frame(dport))), seconds=seconds)


class Running:
    """The application, a switch whose port 2 is a link of 10 Mbit/s, and what was said."""

    def __init__(self, t, app, switch):
        self.t, self.app, self.switch, self.said = t, app, switch, ''

    def events(self):
        self.said += self.app.output()
        return [json.loads(line) for line in self.said.splitlines()]

    def wait(self, event, count=1, seconds=20):
        """The `count`th such event"""
        return until(lambda: [e for e in self.events() if e['event'] == event], event, seconds,
                     wanted=lambda found: len(found) >= count, check=self.app.check)[count - 1]

    def sent(self, conn):
        """{queue: bytes} of port 2"""
        return {q: s['tx_bytes'] for (_, q), s in conn.queue_stats(2).items()}


@pytest.fixture
def running(framework, tmp_path):
    @contextlib.contextmanager
    def run(**words):
        path = tmp_path / 'reserve.json'
        path.write_text(json.dumps({'match': {'udp_dst': 7000}, 'rate': '6mbit', 'quiet': 1,
                                    **words}))
        with topo.Topology(ports=1) as t, Link(t.switch_ns, 'near', 'far', 10 * MBIT), \
                framework.run(t.switch_ns, 'reserve', OFQOS_RESERVE=str(path)) as app, \
                topo.Switch(t, 'tcp:127.0.0.1', interfaces=['p1', 'near']) as switch:
            until(lambda: 'output=normal' in switch.dpctl('stats-flow').stdout, 'the switch is set up', check=app.check)
            yield Running(t, app, switch)
    return run


def test_reserves_where_packets_are_lost_and_releases_after(running):
    with running() as r, r.switch.connect() as conn:
        with flood(r.t, 7000, 4), flood(r.t, 8000, 4):
            time.sleep(1)
            assert r.events() == [] and tc.classes(r.t.switch_ns, 'near') == {}
            with flood(r.t, 9000, 6):
                congested, reserved = r.wait('congested'), r.wait('reserved')
                assert (congested['switch'], congested['port']) == ('0000000000000001', 2)
                assert congested['lost'] >= 1 and congested['bps'] > 5 * MBIT
                assert (reserved['rate'], reserved['link']) == (6 * MBIT, 9.8 * MBIT)
                classes = tc.classes(r.t.switch_ns, 'near')
                assert classes[PROTECTED]['options']['rate'] == 6 * MBIT
                assert classes[PROTECTED]['options']['ceil'] == 9.8 * MBIT
                assert classes[OTHERS]['options']['rate'] == 3.8 * MBIT
                # Others lose, the protected traffic does not: it keeps below what is reserved
                before = r.sent(conn)
                time.sleep(2)
                assert {e['event'] for e in r.events()} == {'congested', 'reserved'}
                assert all(b > before[q] for q, b in r.sent(conn).items()
                           if q in (PROTECTED, OTHERS))
                assert conn.queue_stats(2)[2, PROTECTED]['tx_errors'] == 0
                assert conn.queue_stats(2)[2, OTHERS]['tx_errors'] > 0
            released = r.wait('released')
            lost = {name: queue['lost'] for name, queue in released['queues'].items()}
            assert lost['others'] > lost['protected'] == 0
            assert tc.classes(r.t.switch_ns, 'near') == {}
            assert 'set_queue' not in r.switch.dpctl('stats-flow').stdout
            with flood(r.t, 9000, 6):           # and again
                r.wait('reserved', 2)
        assert [e['event'] for e in r.events()].count('congested') == 2


def test_queues_of_others_are_left_alone(running):
    with running() as r:
        r.switch.dpctl('qos-htb', 'cmd=add,port=2,class=5,rate=1mbit,ceil=10mbit')
        with flood(r.t, 9000, 14):
            told = r.wait('left alone')
            assert told['port'] == 2 and 'queues' in told['why']
            time.sleep(1)
        assert [e['event'] for e in r.events()] == ['congested', 'left alone']     # told once
        assert set(tc.classes(r.t.switch_ns, 'near')) & {5, PROTECTED, OTHERS} == {5}


def test_link_that_is_too_slow(running):
    with running(rate='10mbit') as r, flood(r.t, 9000, 14):
        assert 'can\'t be reserved' in r.wait('left alone')['why']


def test_link_named_in_the_settings(running):
    with running(rate='2mbit', link='8mbit', use=1) as r, flood(r.t, 9000, 14):
        assert r.wait('reserved')['link'] == 8 * MBIT
        assert tc.classes(r.t.switch_ns, 'near')[OTHERS]['options']['rate'] == 6 * MBIT


def test_settings_that_are_wrong(osken, tmp_path):
    sys.path += [PACKAGE, EXAMPLES]
    settings = importlib.import_module('reserve').settings
    path = tmp_path / 'reserve.json'
    good = {'match': {'tcp_dst': 1}, 'rate': '1mbit'}
    for found, word in (([], 'object'), ({'rate': '1mbit'}, 'match'), (dict(good, rate='x'), 'x'),
                        (dict(good, quiet=0), 'quiet'), (dict(good, use=1.1), 'use'), (dict(good, speed=0), 'speed'),
                        (dict(good, losses=True), 'losses'), (dict(good, link='slow'), 'slow')):
        path.write_text(json.dumps(found))
        with pytest.raises(ValueError, match=word):
            settings(path)
    path.write_text(json.dumps(good))
    assert settings(path)['rate'] == MBIT and settings(path)['quiet'] == 30


def test_settings_that_are_not_there(framework):
    with topo.Topology(ports=0) as t, \
            framework.run(t.switch_ns, 'reserve', OFQOS_RESERVE='/nowhere') as app:
        assert app.process.wait(30) != 0
        assert '/nowhere' in app.errors().splitlines()[-1]
