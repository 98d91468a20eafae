# SPDX-License-Identifier: Apache-2.0
"""ofqos shaper (docs/how-to/subscribers.md) before the real switch, between hosts at the core and at the edge: each tenth
customer gets his plan both ways, what does not change is left alone, and what is refused changes nothing.

The kernel may lack fq_codel: the leaf is none.  Host 1 is at the core, host 2 is all customers."""
import csv
import json
import os
import re
import shlex
import subprocess
import sys
import time

import pytest

from support import isplist, pki, tc
from support.served import PACKAGE
from support.topo import REPOSITORY, Switch, Topology, dpctl, eth, inside, sh, udp4
from support.udp import PAYLOAD, Stream, measured

CIRCUITS, MBIT = 100, 10 ** 6
FRAME = PAYLOAD + 42
NAMES = {0: 'p2', 1: 'p1'}          # by way: downloads leave by p2


def plan_of(n):
    """Mbit/s: guaranteed and most, of download and of upload"""
    return 0.5, 2 + n // 10 % 4, 0.25, 1 + n // 10 % 2


def address(n):
    return f'100.64.{n >> 8}.{n & 255}'


class Lists:
    """Both files in a directory; `rows` and `tree` change as a test wants"""

    def __init__(self, directory):
        self.directory, self.state = str(directory), os.path.join(directory, 'state.json')
        self.tree = {f'Site_{s}': {'downloadBandwidthMbps': 200, 'uploadBandwidthMbps': 200, 'type': 'site', 'children': {
            f'AP_{a}': {'downloadBandwidthMbps': 100, 'uploadBandwidthMbps': 100, 'type': 'ap'} for a in range(s, 11, 2)}} for s in (1, 2)}
        self.rows = {n: [n, f'customer {n}', n, '', f'AP_{n % 10 + 1}', '', address(n), f'2001:db8:{n:x}::/48', *(plan_of(n)[i] for i in (0, 2, 1, 3)), '']
                     for n in range(CIRCUITS)}

    def write(self):
        with open(os.path.join(self.directory, 'network.json'), 'w', encoding='utf-8') as f:
            json.dump(self.tree, f)
        with open(os.path.join(self.directory, 'ShapedDevices.csv'), 'w', encoding='utf-8', newline='') as f:
            csv.writer(f).writerows([isplist.HEADER, *self.rows.values()])

    def shaper(self, command, *options, check=True):
        """-> what it tells with --json"""
        self.write()
        done = subprocess.run([sys.executable, '-m', 'ofqos.command', 'shaper', '--json', '--state', self.state, command, *options],
                              cwd=self.directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=900, env={**os.environ, 'PYTHONPATH': PACKAGE}, check=False)
        assert done.stdout, done.stderr
        found = json.loads(done.stdout)
        assert not check or done.returncode == 0, found.get('error') or found['errors']
        return found

    def first(self, switch, *options):
        return self.shaper('apply', '--connect', switch.address, '--core', 'p1', '--edge', 'p2', '--leaf', 'none', '--download', '1gbit',
                           '--upload', '1gbit', *options)

    def numbers(self):
        with open(self.state, encoding='utf-8') as f:
            return json.load(f)['numbers']


@pytest.fixture(scope='module', name='topo')
def two_hosts():
    with Topology(2, ip=True, offload=False) as t:
        core, edge = t.host_ns(1), t.host_ns(2)
        for n in range(0, CIRCUITS, 10):
            sh('ip', '-n', edge, 'address', 'add', f'{address(n)}/32', 'dev', 'e0')
            sh('ip', '-n', edge, 'address', 'add', f'2001:db8:{n:x}::1/128', 'dev', 'e0', 'nodad')
        sh('ip', '-n', core, 'route', 'add', '100.64.0.0/16', 'via', '10.0.0.2')
        sh('ip', '-n', core, 'route', 'add', '2001:db8::/32', 'via', 'fd00::2')
        yield t


@pytest.fixture(name='lists')
def the_lists(tmp_path):
    return Lists(tmp_path)


@pytest.fixture(name='switch')
def a_switch(topo):
    with Switch(topo, '--fail=open') as s:      # as the page has it
        yield s


def classes(topo):
    """By way and number: rates and counters, as the kernel has them"""
    return {(way, number): (row['parent'], row['options']['rate'], row['options']['ceil'], row['packets'], row['bytes'])
            for way, port in NAMES.items() for number, row in tc.classes(topo.switch_ns, port).items() if number < 0xfff0}


def packets(topo, number):
    return [classes(topo)[way, number][3] for way in (0, 1)]


def flows(switch):
    rows = [line.split() for line in switch.dpctl('dump-flows').stdout.splitlines()[1:]]
    return sorted((row[1], row[7], *row[9:]) for row in rows)       # priority, cookie, match, instructions


def streams(topo, circuits, way, mbit=None):
    """One each, offering half as much again as the plan"""
    return [Stream(topo, 1, 2, address(n), 5000 + n, (mbit or plan_of(n)[1]) * MBIT * 1.5) if way == 0 else
            Stream(topo, 2, 1, '10.0.0.1', 5000 + n, (mbit or plan_of(n)[3]) * MBIT * 1.5, source=address(n)) for n in circuits]


def test_the_page(topo, switch, tmp_path):
    """Its files and its commands, as they are, but for the ports' names and the leaf"""
    with open(os.path.join(REPOSITORY, 'docs/how-to/subscribers.md'), encoding='utf-8') as f:
        page = f.read()
    texts = {text.splitlines()[0]: re.sub('^    ', '', text, flags=re.M) for text in re.findall(r'(?:^    .*\n)+', page, re.M)}
    for name, first in ('ShapedDevices.csv', '    Circuit ID,'), ('network.json', '    {'):
        (tmp_path / name).write_text(next(text for line, text in texts.items() if line.startswith(first)), encoding='utf-8')
    commands = re.findall(r'^    ofqos (shaper (?!--state).*?)(?: +#.*)?$', page, re.M)
    assert len(commands) == 9
    said = []
    for command in commands:
        for theirs, ours in ('--connect unix:/run/ofqos/br0.sock', f'--connect {switch.address} --leaf none'), ('eth1', 'p1'), ('eth2', 'p2'):
            command = command.replace(theirs, ours)
        done = subprocess.run([sys.executable, '-m', 'ofqos.command', *shlex.split(command)], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60, env={**os.environ, 'PYTHONPATH': PACKAGE, 'STATE_DIRECTORY': str(tmp_path)}, check=False)
        assert done.returncode == 0, (command, done.stderr)
        said.append(done.stdout)
    assert said[2] == texts['    site Village: down 500mbit; up 200mbit; queue 17'] and 'nothing to change' in said[4]
    rows = (tmp_path / 'ShapedDevices.csv').read_text(encoding='utf-8').replace(',5,2,50,10,', ',5,2,80,10,')
    (tmp_path / 'ShapedDevices.csv').write_text(rows, encoding='utf-8')
    done = subprocess.run([sys.executable, '-m', 'ofqos.command', 'shaper', 'plan'], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60, env={**os.environ, 'PYTHONPATH': PACKAGE, 'STATE_DIRECTORY': str(tmp_path)}, check=True)
    assert done.stdout.endswith(texts['      ~ circuit 1001: down 5mbit to 80mbit (was 5mbit to 50mbit)'])


def test_each_tenth_gets_its_plan(topo, switch, lists):
    found = lists.first(switch)
    assert found['applied'] and (found['circuits'], found['sites'], found['addresses']) == (CIRCUITS, 12, 2 * CIRCUITS)
    assert len(found['changes']) == CIRCUITS + 12 + 2 and {change['what'] for change in found['changes']} == {'new'}
    tenth, numbers = range(0, CIRCUITS, 10), lists.numbers()
    for way in 0, 1:
        arrived = measured(streams(topo, tenth, way))
        wanted = [plan_of(n)[1 + 2 * way] * PAYLOAD / FRAME for n in tenth]
        assert arrived == pytest.approx(wanted, rel=0.05), NAMES[way]
    number = numbers['circuit 20']
    before = packets(topo, number)
    assert topo.pings(1, '2001:db8:14::1') and topo.pings(1, address(20))
    assert packets(topo, number)[0] >= before[0] + 2          # answers come from fd00::2 or the address itself
    before = packets(topo, number)
    with topo.host(1) as core, topo.host(2) as edge:
        core.send(eth(udp4(dst=address(20)), vlan=7))
        assert edge.recv(wanted=lambda frame: frame[12:16] == b'\x81\0\0\7')
    assert packets(topo, number)[0] == before[0] + 1        # tagged or not
    before = packets(topo, numbers['unlisted'])
    assert topo.pings(1, '10.0.0.2')
    assert all(now > then for now, then in zip(packets(topo, numbers['unlisted']), before))


@pytest.mark.parametrize('leaf', ['pfifo', *(pytest.param(kind, marks=pytest.mark.testkernel) for kind in ('fq_codel', 'cake'))])
def test_leaves(topo, switch, lists, leaf, need):
    """Each circuit has its own, and so has what is unlisted; traffic passes them."""
    need(leaf)
    lists.rows = {n: lists.rows[n] for n in (0, 10, 20)}
    found = lists.first(switch, '--leaf', leaf)
    circuits = [lists.numbers()[key] for key in ('unlisted', 'circuit 0', 'circuit 10', 'circuit 20')]
    below = {parent & 0xffff: row['kind'] for parent, row in tc.qdiscs(topo.switch_ns, 'p2').items() if parent != tc.ROOT}
    assert {number: below.get(number) for number in circuits} == dict.fromkeys(circuits, leaf)
    assert found['messages'] == 2 * (17 + 4) + 22 and lists.shaper('plan')['messages'] == 0
    assert measured(streams(topo, [20], 0)) == pytest.approx([plan_of(20)[1] * PAYLOAD / FRAME], rel=0.05)
    assert lists.shaper('apply', '--leaf', 'none')['messages'] == 8


def test_a_site_is_shared(topo, switch, lists):
    """Its ceiling holds, and the guarantees in it."""
    lists.tree['Site_1']['children']['AP_1'].update(downloadBandwidthMbps=6, uploadBandwidthMbps=6)
    lists.rows = {n: lists.rows[n] for n in (0, 10, 20)}
    for n, least in (0, 4), (10, 0.5), (20, 0.5):
        lists.rows[n][4], lists.rows[n][8:12] = 'AP_1', (least, 0.25, 5, 5)
    lists.first(switch)
    arrived = measured(streams(topo, (0, 10, 20), 0, mbit=5))
    part = PAYLOAD / FRAME
    assert sum(arrived) == pytest.approx(6 * part, rel=0.05) and arrived[0] >= 4 * part * 0.95
    assert arrived[1] == pytest.approx(arrived[2], rel=0.15)


def test_what_is_left_is_shared_by_ceilings(topo, switch, lists):
    """A plan of three times as much gets three times as much of what nobody is guaranteed."""
    lists.tree['Site_1']['children']['AP_1'].update(downloadBandwidthMbps=24)
    lists.rows = {n: lists.rows[n] for n in (0, 10)}
    for n, most in (0, 15), (10, 45):
        lists.rows[n][4], lists.rows[n][8:12] = 'AP_1', (1, 0.25, most, 5)
    lists.first(switch)
    arrived = measured(streams(topo, (0, 10), 0, mbit=20), before=2.5)
    assert arrived == pytest.approx([part * PAYLOAD / FRAME for part in (1 + 22 / 4, 1 + 22 * 3 / 4)], rel=0.1)


def test_only_what_changes(topo, switch, lists):
    lists.first(switch)
    assert topo.pings(1, address(30)) and topo.pings(1, address(40))
    time.sleep(0.5)
    before, rules = classes(topo), flows(switch)
    found = lists.shaper('apply')
    assert found['messages'] == 0 and not found['changes'] and classes(topo) == before and flows(switch) == rules
    lists.rows[30][10:12] = (7, 3)
    found = lists.shaper('plan')
    assert found['messages'] == 2 and not found['applied'] and classes(topo) == before
    found = lists.shaper('apply')
    assert [(change['what'], change['of'], change['classes'], change['flows']) for change in found['changes']] == [('changed', 'circuit 30', 2, 0)]
    after, number = classes(topo), lists.numbers()['circuit 30']
    assert {key for key in after if after[key] != before[key]} == {(0, number), (1, number)}
    assert [after[way, number][2] for way in (0, 1)] == [7 * MBIT, 3 * MBIT]
    assert [after[way, number][3] for way in (0, 1)] == [before[way, number][3] for way in (0, 1)]      # counters go on
    assert lists.shaper('show', address(30))['tree'][-1]['ceiling'] == {'down': 7 * MBIT, 'up': 3 * MBIT}
    del lists.rows[40]
    found = lists.shaper('apply')
    assert [(change['what'], change['of'], change['classes'], change['flows']) for change in found['changes']] == [('gone', 'circuit 40', 2, 4)]
    assert not topo.pings(1, address(40)) or packets(topo, 16)[0] > before[0, 16][3]       # it is unlisted now


def test_500_at_once(topo, switch, lists):
    lists.first(switch)
    before = classes(topo)
    for n in range(1000, 1500):
        lists.rows[n] = [n, '', n, '', f'AP_{n % 10 + 1}', '', address(n), '', 0.1, 0.1, 5, 2, '']
    found = lists.shaper('apply')
    assert len(found['changes']) == 500 and found['messages'] == 500 * 4
    after = classes(topo)
    assert len(after) == len(before) + 1000 and {key: value[:3] for key, value in before.items()} == {key: after[key][:3] for key in before}


def test_a_list_that_was_cut_off(topo, switch, lists):
    lists.first(switch)
    before = classes(topo)
    lists.rows = {n: lists.rows[n] for n in range(40)}
    assert lists.shaper('apply', check=False)['error'] == '60 of 100 circuits are not in the list any more; if that is meant, --force'
    assert classes(topo) == before and lists.shaper('plan')['messages'] == 60 * 6
    assert lists.shaper('apply', '--force')['messages'] == 60 * 6


def test_what_is_refused_changes_nothing(topo, switch, lists):
    """A stranger's class keeps its site: all else would have been done before it."""
    lists.first(switch)
    site = lists.numbers()['site AP_3']
    switch.dpctl('qos-htb', f'cmd=add,port=2,class=60000,parent={site},rate=1mbit')
    before, rules, numbers = classes(topo), flows(switch), lists.numbers()
    del lists.tree['Site_1']['children']['AP_3']
    for n, row in lists.rows.items():
        row[4], row[10] = (row[4], 9) if row[4] != 'AP_3' else ('AP_5', 8)
        row[6] = f'{row[6]}, 100.65.0.{n}'
    found = lists.shaper('apply', check=False)
    assert 'site AP_3' in found['error'] and 'OFPSFC_BUSY' in found['error'] and found['error'].endswith('; nothing was changed')
    assert classes(topo) == before and flows(switch) == rules and lists.numbers() == numbers
    switch.dpctl('qos-htb', 'cmd=del,port=2,class=60000')
    assert lists.shaper('apply')['applied'] and lists.shaper('plan')['messages'] == 0
    assert (0, site) not in classes(topo)


def test_after_a_restart(topo, lists):
    """All is made again with the same numbers; without a state file they are read from the switch."""
    with Switch(topo) as switch:
        lists.first(switch)
        first, numbers, rules = classes(topo), lists.numbers(), flows(switch)
        os.unlink(lists.state)
        assert lists.first(switch)['messages'] == 0 and lists.numbers() == numbers
    with Switch(topo) as switch:
        assert lists.shaper('plan', '--connect', switch.address)['messages'] == 2 * (CIRCUITS + 12 + 2) + 4 * CIRCUITS + 10
        lists.shaper('apply', '--connect', switch.address)
        assert {key: row[:3] for key, row in classes(topo).items()} == {key: row[:3] for key, row in first.items()}
        assert lists.numbers() == numbers and len(flows(switch)) == len(rules)


def test_a_site_moves(topo, switch, lists):
    lists.first(switch)
    lists.tree['Site_2']['children']['Site_1'] = lists.tree.pop('Site_1')
    before = lists.numbers()
    lists.shaper('apply')
    assert {key for key, number in lists.numbers().items() if before[key] != number} == {'site Site_1', *(f'site AP_{a}' for a in range(1, 11, 2))}
    assert lists.shaper('plan')['messages'] == 0 and lists.shaper('plan')['left'] == 0
    assert [row['name'] for row in lists.shaper('show', '20')['tree']] == ['Site_2', 'Site_1', 'AP_1', '20']


def test_a_switch_that_connects(topo, lists, tmp_path):
    path = str(tmp_path / 'shaper.sock')
    with Switch(topo, f'unix:{path}') as switch:
        found = lists.shaper('apply', '--accept', f'unix:{path}', '--core', 'p1', '--edge', 'p2', '--leaf', 'none')
        assert found['applied'] and len(flows(switch)) == 4 * CIRCUITS + 10
    with Switch(topo, dpid='0000000000000002') as other:
        assert 'is of switch 0000000000000001' in lists.shaper('plan', '--connect', other.address, check=False)['error']


def test_tls(topo, lists, tmp_path):
    if 'no TLS' in dpctl('--ca-cert=x', 'tls:127.0.0.1', 'features', check=False).stderr:
        pytest.skip('this build has no TLS')
    authority = pki.Authority(tmp_path, 'ours')
    switch, own = authority.identity('switch'), authority.identity('controller')
    with Switch(topo, *switch.options(), 'ptls:') as s:
        with inside(topo.switch_ns):
            found = lists.first(s, '--connect', 'tls:127.0.0.1', *own.options())
            assert found['applied'] and len(flows(s)) == 4 * CIRCUITS + 10
            refused = lists.shaper('plan', check=False)       # the files are not remembered
    assert 'a tls: address needs a key, a certificate and a CA' in refused['error']


def test_live(topo, switch, lists):
    lists.first(switch)
    stream, = streams(topo, [50], 0)
    for thread in stream.threads:
        thread.start()
    time.sleep(1)
    row = lists.shaper('show', '50', '--live')['tree'][-1]
    stream.close()
    assert row['now']['down'] == pytest.approx(plan_of(50)[1] * MBIT, rel=0.15) and row['now']['up'] < MBIT / 10


@pytest.mark.long
def test_ten_thousand(topo, switch, tmp_path, record_property):
    lists = Lists(tmp_path)
    isplist.write(str(tmp_path))
    lists.write = lambda: None
    took = {}

    def timed(what, *words):
        began = time.monotonic()
        found = lists.shaper(*words)
        took[what] = round(time.monotonic() - began, 1)
        return found
    assert timed('all', 'apply', '--connect', switch.address, '--core', 'p1', '--edge', 'p2', '--leaf', 'none')['circuits'] == 10_000
    assert timed('unchanged', 'apply')['messages'] == 0
    path = tmp_path / 'ShapedDevices.csv'
    path.write_text(path.read_text().replace(',25,5,', ',26,5,', 1), encoding='utf-8')
    assert timed('one plan', 'apply')['messages'] == 1
    for what, seconds in took.items():
        record_property(what, seconds)
    print(took)
