# SPDX-License-Identifier: Apache-2.0
"""What is shown of subscribers (ofqos.daemon.subscribers), from two looks at an invented switch.  Needs no root."""
import json
import sys
import types

import pytest

from support import isplist
from support.app import PACKAGE

for module in 'aiohttp', 'yaml':
    pytest.importorskip(module, reason=f'{module} is not installed (Debian: python3-{module})')
sys.path.append(PACKAGE)
from ofqos import request  # noqa: E402
from ofqos.daemon import fault  # noqa: E402
from ofqos.daemon.subscribers import Subscribers  # noqa: E402
from ofqos.replies import Counters, Entry, Figures, Latency, Retransmissions, Segments  # noqa: E402
from ofqos.shaper.read import read  # noqa: E402
from ofqos.shaper.state import State, assigned  # noqa: E402
from ofqos.web import tree  # noqa: E402
from ofqos.web.hub import View  # noqa: E402
from ofqos.web.ports import Port  # noqa: E402
from ofqos.web.window import parse  # noqa: E402

CORE, EDGE = 1, 2


def entry(port, number, turn, **more):
    counters = {'bytes': number * 1000 * turn, 'packets': number * turn, 'drops': 0, 'overlimits': 0, 'requeues': 0, 'marked': 0,
                'backlog_bytes': 0, 'backlog_packets': 0, **more}
    return Entry(request('htb', 'add', port=port, class_id=number, rate='1mbit', ceil='10mbit'), 0, Counters(**counters))


def latency(port, number, rtt):
    none = Figures(0, None, None, None, None)
    made = dict.fromkeys(Latency._fields)
    made.update(port=port, class_id=number, direction='out', seconds=10, rtt=Figures(9, rtt, rtt, rtt, rtt), delay=none)
    return Latency(**made)


class Invented:
    """`circuits`, and a switch that carries number x 8 kbit/s for each"""

    def __init__(self, directory, circuits, drops=(), rtts=(), backlogs=(), segments=()):
        devices, sites = isplist.write(str(directory), circuits, circuits // 30, max(1, circuits // 300))
        network, problems = read(devices, sites)
        assert not problems.errors
        self.state = State('1', {}, assigned(network, {}, [{}, {}]), network)
        self.looks = []
        for turn in 1, 2:
            entries = [entry(port, number, turn, drops=dict(drops).get(number, 0) * turn if port == EDGE else 0,
                             backlog_bytes=dict(backlogs).get(number, 0)) for number in self.state.numbers.values() for port in (CORE, EDGE)]
            self.looks.append(tree.look(float(turn), entries, [], [], None, [latency(EDGE, number, rtt) for number, rtt in rtts], segments))
        watch = types.SimpleNamespace(look=self.looks[1], look_before=self.looks[0], name='core',
                                      ports={n: Port(n, f'p{n}', '', 0, 0, 0) for n in (CORE, EDGE)})
        settings = types.SimpleNamespace(switch=1, options={'core': 'p1', 'edge': 'p2'})
        self.shaper = types.SimpleNamespace(set=settings, state=self.state, own={}, lists=network, trouble=[], warnings=[], applied_at=1.0, sources=None,
                                            dp=f'{1:016x}', switches=[1])
        self.shown = Subscribers(self.shaper, types.SimpleNamespace(watches={1: watch}))

    def list(self, site=None, **words):
        return self.shown.list(site, parse('subscribers', words))


def test_figures(tmp_path):
    first = {key: number for key, number in Invented(tmp_path, 60).state.numbers.items()}
    one, two, three = (first[f'circuit {n}'] for n in (10001, 10002, 10003))
    made = Invented(tmp_path, 60, drops=[(one, 7), (two, 3)], rtts=[(one, 30_000), (three, 80_000)], backlogs=[(two, 8000)])
    assert made.state.numbers == first
    found = made.list(find='100.64.0.2')['circuits']
    row = next(each for each in found if each['id'] == '10001')
    assert (row['bps'], row['drops_ps'], row['drops'], row['rtt_us']) == ([one * 8000] * 2, [7, 0], [14, 0], [30_000, None])
    worst = made.list()['worst']
    assert [each[0] for each in worst['rtt_us']] == ['10003', '10001'] and [each[0] for each in worst['drops_ps']] == ['10001', '10002']
    assert worst['delay_us'] == [['10002', '2 Example Street, Springfield', 0, int(8e6 / two), True]]
    by = made.list(sort='rtt')['circuits']
    assert [each['id'] for each in by[:2]] == ['10003', '10001'] and made.list(sort='down')['circuits'][0]['bps'][0] == max(
        number for key, number in first.items() if key.startswith('circuit')) * 8000
    at = made.state.network.circuits['10001'].parent
    site = made.list(site=at)
    below = {c.id for c in made.state.network.circuits.values() if c.parent == at}
    assert {c['id'] for c in site['circuits']} == below and site['of']['name'] == at and site['of']['drops_ps'][0] >= 7
    assert made.list(site='Nowhere') is None and made.shown.one('nobody') is None
    assert len(list(made.shown.table())) == 61
    top = made.list()['sites']
    assert [s['depth'] for s in top][0] == 0 and sum(s['circuits'] for s in top if not s['depth']) == 60
    assert top[0]['bps'][0] == first[f'site {top[0]["name"]}'] * 8000


def test_outcome_and_whose_fault(tmp_path):
    """A customer with long round trips on his side, one whose plan is full, one of a full site, one with nothing."""
    numbers = Invented(tmp_path, 60).state.numbers
    far, full, ours = (numbers[f'circuit {n}'] for n in (10001, 10002, 10003))
    made = Invented(tmp_path, 60, rtts=[(far, 120_000), (full, 30_000)], drops=[(full, 5), (ours, 2)], backlogs=[(ours, 40_000)])
    found = made.list()
    assert [each[0] for each in found['worst']['outcome']] == ['10002', '10001']
    assert made.list(sort='outcome')['circuits'][0]['id'] == '10002'
    row = next(each for each in found['circuits'] if each['id'] == '10001')
    assert row['outcome'] == [50, None] and {tuple(s['outcome']) for s in found['sites']} >= {(0, None), (50, None)}
    assert made.shown.one('10004')['faults'] == [] and made.shown.one('10004')['sees'] is None
    down, up = made.shown.one('10003')['faults']
    assert down['whose'] == up['whose'] == 'our queue' and 'packets wait' in up['why'] and '2 packets a second are dropped in his download' in down['why']


@pytest.mark.parametrize('changed, whose', [
    ({}, []), ({'bits': 49e6, 'delay_us': 20_000}, ['his plan']), ({'delay_us': 20_000, 'sites': [('Mast', 96e6, 10 ** 8)]}, ['the site']),
    ({'sites': [('Mast', 96e6, 10 ** 8)]}, []), ({'drops_ps': 1.0}, ['our queue']), ({'rtt': 80_000}, ['his home or line']),
    ({'rtt': 80_000, 'delay_us': 60_000, 'bits': 50e6}, ['his plan']), ({'segments': Segments(1000, 12, 0)}, ['his home or line']),
    ({'segments': Segments(1000, 9, 0)}, []), ({'segments': Segments(199, 100, 0)}, []), ({'segments': Segments(1000, 0, 20)}, ['beyond']),
    ({'segments': Segments(1000, 12, 0), 'drops_ps': 1.0}, ['our queue']),          # that is 1 % of 101 packets a second
    ({'segments': Segments(1000, 30, 10), 'drops_ps': 1.0}, ['our queue', 'his home or line', 'beyond'])])
def test_whose_fault(changed, whose):
    """Of the download; what waits in our queue is not his line's."""
    measured = latency(EDGE, 17, changed.pop('rtt', 20_000))._replace(path_us=15_000)
    way = fault.Way(1e6, 50 * 10 ** 6, [('Mast', 10e6, 10 ** 8)], measured, 100, 0.0, 100.0)
    quiet = way._replace(latency=measured._replace(rtt=measured.rtt._replace(p50=10_000, p90=10_000)))
    ways = [way._replace(**changed), quiet]
    assert [each['whose'] for each in fault.faults(ways)] == whose
    assert [each['whose'] for each in fault.faults([quiet, way._replace(latency=measured._replace(rtt=measured.rtt._replace(p50=99_000)))])] == ['beyond']
    assert fault.sees(ways)['rtt_us'] == measured.rtt.p50 + 10_000 and fault.sees([quiet, quiet._replace(latency=None)]) is None
    assert fault.sees(ways)['lost'] == [fault.share(ways[0].segments), None]
    upload = quiet._replace(segments=Segments(500, 10, 20))
    assert [each['whose'] for each in fault.faults([quiet, upload])] == ['beyond', 'his home or line']


def test_lost(tmp_path):
    """Of a circuit and of its site, by share; totals in the CSV"""
    numbers = Invented(tmp_path, 60).state.numbers
    one, two = (numbers[f'circuit {n}'] for n in (10001, 10002))
    lost = [Retransmissions(port, n, 'out', Segments(9000, 90, 45), late, 10)
            for port, n, late in ((EDGE, one, Segments(1000, 10, 5)), (CORE, one, Segments(0, 0, 0)), (EDGE, two, Segments(100, 10, 0)))]
    made = Invented(tmp_path, 60, segments=lost)
    rows = {each['id']: each['lost'] for each in made.list()['circuits']}
    assert rows['10001'] == [1.5, None] and rows['10002'] == [10.0, None] and rows['10003'] == [None, None]
    assert [each['id'] for each in made.list(sort='lost')['circuits'][:2]] == ['10002', '10001']
    assert {tuple(each['lost']) for each in made.list()['sites']} >= {(round(100 * 25 / 1100, 2), None)}
    head, *rows = made.shown.table()
    row = dict(zip(head, next(row for row in rows if row[0] == '10001')))
    assert [row[f'{what}_{way}'] for what in ('segments', 'lost_behind', 'lost_before') for way in ('down', 'up')] == [9000, 9000, 90, 90, 45, 45]


def test_a_view_is_small(tmp_path):
    """10,000 circuits: what a page gets is not larger than of 60, and not slow."""
    made = Invented(tmp_path, 10_000, drops=[(n, 1) for n in range(400, 10_000, 3)], rtts=[(n, n) for n in range(400, 10_000)])
    shown = made.shown.show(View(('subscribers',)))
    assert len(json.dumps(shown, separators=(',', ':'))) < 50_000 and len(shown['circuits']) == 60 and len(shown['worst']['rtt_us']) == 10
