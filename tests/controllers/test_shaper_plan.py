# SPDX-License-Identifier: Apache-2.0
"""ofqos shaper (docs/how-to/subscribers.md) without a switch: its reader, its plan, what changes.  Needs no root.

$OFQOS_LIBREQOS: a directory with LibreQoS's own example files, where they are at hand."""
import glob
import json
import os
import pathlib
import re
import shlex
import sys
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / 'controllers/python'), str(REPOSITORY / 'tests')]

from ofqos import flows, wire  # noqa: E402
from ofqos.request import Request  # noqa: E402
from ofqos.shaper import cli, model, state as states, words  # noqa: E402
from ofqos.shaper.difference import Found, Has, difference, recovered  # noqa: E402
from ofqos.shaper.known import Changes, Known  # noqa: E402
from ofqos.shaper.model import Circuit, Network, Pair, Prefix, Site  # noqa: E402
from ofqos.shaper.plan import Box, plan  # noqa: E402
from ofqos.shaper.read import read  # noqa: E402
from support import isplist  # noqa: E402

HEADER = ('Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,Download Min Mbps,Upload Min Mbps,'
          'Download Max Mbps,Upload Max Mbps,Comment')
LONG = HEADER.replace('Parent Node,', 'Parent Node,Parent Node ID,Anchor Node ID,')
SITES = {'North': {'downloadBandwidthMbps': 1000, 'uploadBandwidthMbps': 500, 'type': 'site', 'children': {
    'Mast': {'downloadBandwidthMbps': 200, 'uploadBandwidthMbps': 100.5, 'type': 'ap'}}},
    'South': {'downloadBandwidthMbps': 300, 'uploadBandwidthMbps': 300, 'type': 'site'}}
GOOD = '7,Mill Lane,1,Router,Mast,,192.0.2.7,2001:db8:7::/56,2,1,50,10,'
BOX = Box(Pair(2, 1), Pair(10 ** 9, 10 ** 9), Pair(10 ** 9, 10 ** 9), 'none')


@pytest.fixture(name='files')
def a_directory(tmp_path):
    """files(rows, sites) -> network, problems as texts"""
    def made(*rows, sites=SITES, header=HEADER, text=None):
        csv, tree = tmp_path / 'ShapedDevices.csv', tmp_path / 'network.json'
        if text is None:
            text = '\n'.join([header, *rows]) + '\n'
        csv.write_bytes(text if isinstance(text, bytes) else text.encode())
        tree.write_bytes((sites if isinstance(sites, str) else json.dumps(sites)).encode())
        network, problems = read(str(csv), str(tree))
        return network, [str(each) for each in problems.errors], [str(each) for each in problems.warnings]
    return made


# ------------------------------------------------------------------------------------- reading

def test_what_the_files_say(files):
    network, errors, warnings = files(
        '# a remark, with "quotes', GOOD, '', '8,"High St. 1, Springfield",2,Router,Mast,02:00:00:00:00:01,"192.0.2.8, 198.51.100.0/29",,0.5,0.25,2.5,1,x',
        '8,"High St. 1, Springfield",3,Phone,Mast,,192.0.2.9,,0.5,0.25,2.5,1,', '9,,4,,,,192.0.2.10,,1,1,1,1')
    assert errors == ['ShapedDevices.csv:7: 12 cells; the header has 13'] and warnings == []
    assert network.sites == {
        'North': Site('North', '', 'site', Pair(10 ** 9, 5 * 10 ** 8), 1), 'Mast': Site('Mast', 'North', 'ap', Pair(2 * 10 ** 8, 100_500_000), 1),
        'South': Site('South', '', 'site', Pair(3 * 10 ** 8, 3 * 10 ** 8), 1)}
    seven, eight = network.circuits.values()
    assert seven == Circuit('7', 'Mill Lane', 'Mast', Pair(2_000_000, 1_000_000), Pair(50_000_000, 10_000_000),
                            (Prefix(4, 0xc0000207, 32), Prefix(6, 0x20010db80007 << 80, 56)), 3)
    assert eight.guarantee == Pair(500_000, 250_000) and eight.ceiling == Pair(2_500_000, 1_000_000) and eight.line == 5
    assert [words.text_of(prefix) for prefix in eight.addresses] == ['192.0.2.8', '198.51.100.0/29', '192.0.2.9']


OWN = """
sites:
  Mast: {below: North, down: 200mbit, up: 100500kbit, kind: ap}
  North: {down: 1gbit, up: 500mbit}
  South: {down: 300mbit, up: 300mbit}
circuits:
  7: {name: Mill Lane, site: Mast, down: 2mbit to 50mbit, up: 1mbit to 10mbit, addresses: [192.0.2.7, "2001:db8:7::/56"], known as: [02-00-5E-00-53-01]}
"""


@pytest.fixture(name='own')
def a_yaml_file(tmp_path):
    pytest.importorskip('yaml', reason='yaml is not installed (Debian: python3-yaml)')

    def made(text):
        (tmp_path / 'subscribers.yaml').write_text(text)
        network, problems = read(str(tmp_path / 'subscribers.yaml'), '')
        return network, [str(each) for each in problems.errors]
    return made


def test_a_file_of_our_own(files, own):
    """The same facts make the same network."""
    network, errors = own(OWN)
    assert not errors and network == files(GOOD)[0] and list(network.sites) == ['North', 'Mast', 'South']
    assert network.circuits['7'].names == ('02-00-5e-00-53-01',) and network.circuits['7'].line == 7
    network, errors = own('circuits: {a: {down: 5mbit, up: 1mbit}}')
    assert not errors and network.circuits['a'].guarantee == network.circuits['a'].ceiling == Pair(5_000_000, 1_000_000)


def test_all_that_is_wrong_with_a_file_of_our_own(own):
    _, errors = own("""sites:
  A: {down: 10, up: 1mbit}
  B: {below: C, down: 1mbit, up: 1mbit}
  C: {below: B, down: 1mbit, up: 1mbit}
  D: {below: Nowhere, down: 1mbit, up: 1mbit, ceil: 3}
  E: {below: Nowhere, down: 1mbit, up: 1mbit}
circuits:
  1: {down: 9mbit to 5mbit, up: 1mbit, addresses: [192.0.2.1/24, x], site: A}
  2: {down: 1mbit}
  3: [a]
  4: {down: 1mbit, up: fast, name: "", known as: {a: b}}
""")
    assert errors == [
        'subscribers.yaml:2: sites.A.down: 10: write its unit, as 10mbit (column 13)',
        "subscribers.yaml:3: sites.B: it is below itself, or more than 6 sites are one below the other: HTB has 7 levels, and the last is the circuit's",
        "subscribers.yaml:4: sites.C: it is below itself, or more than 6 sites are one below the other: HTB has 7 levels, and the last is the circuit's",
        "subscribers.yaml:5: sites.D: 'ceil' is unknown; there are below, down, up, kind (column 47)",
        "subscribers.yaml:6: sites.E.below: there is no site 'Nowhere'",
        'subscribers.yaml:8: circuits.1.down: 9 Mbit/s are guaranteed, and 5 are the most (column 13)',
        "subscribers.yaml:8: circuits.1.addresses[1]: '192.0.2.1/24' is not right: its network is 192.0.2.0/24 (column 52)",
        "subscribers.yaml:8: circuits.1.addresses[2]: 'x' is not right: 'x' does not appear to be an IPv4 or IPv6 network (column 66)",
        'subscribers.yaml:9: circuits.2: up is missing (column 6)',
        'subscribers.yaml:10: circuits.3: a list is not right; keys with values are: name, site, down, up, addresses, known as (column 6)',
        "subscribers.yaml:11: circuits.4.up: 'fast' is not right; a rate as 6mbit is (column 24)",
        "subscribers.yaml:11: circuits.4.name: '' is not right; a text is (column 36)",
        'subscribers.yaml:11: circuits.4.known as: keys with values is not right; a list is, such as [a, b] (column 50)'], '\n'.join(errors)
    for text, why in ('{', 'no YAML'), ('', 'the file is empty'), ('a: b', "'a' is unknown; there are sites, circuits"), ('sites: {}', 'circuits is missing'):
        assert why in own(text)[1][0], text
    assert 'site: there is no node' in own('circuits: {a: {down: 5mbit, up: 1mbit, site: X}}')[1][0]


@pytest.mark.parametrize('row', [GOOD, GOOD.replace('Mast,', 'Mast,id,,')], ids=['old rows', 'new rows'])
def test_the_newer_header(files, row):
    """LibreQoS's own example has rows without the two columns that its header has."""
    network, errors, _ = files(row, header=LONG)
    assert not errors and network.circuits['7'].parent == 'Mast'


def test_bytes_that_editors_write(files):
    network, errors, _ = files(text=b'\xef\xbb\xbf' + f'{HEADER}\r\n{GOOD}\r\n'.encode())
    assert not errors and network.circuits['7'].addresses
    _, errors, _ = files(text=f'{HEADER}\n{GOOD}\n8,M\xfcller'.encode('latin-1'))
    assert errors == ['ShapedDevices.csv: line 3: byte 0xfc is no UTF-8; save the file as UTF-8']


def test_all_that_is_wrong_with_rows(files):
    _, errors, warnings = files(
        '1,,1,,Mast,,192.0.2.1,,fast,1,50,10,', '2,,1,,Mast,,192.0.2.2,,0,1,1e9,10,', '3,,1,,Mast,,192.0.2.3,,60,11,50,10,',
        '4,,1,,Mats,,192.0.2.4,,2,1,50,10,', '5,,1,,Mast,,"192.0.2.256, 192.0.2.5/24, 2001:db8::1",,2,1,50,10,',
        ',,1,,Mast,,192.0.2.6,,2,1,50,10,', '7,,1,,Mast,,192.0.2.7,,2,1,50,10,', '7,,2,,South,,192.0.2.8,,2,1,60,10,', '8,,1,,Mast,,,,2,1,50,10,', 'x,y')
    assert errors == [
        "ShapedDevices.csv:2: Download Min Mbps: 'fast' is not right; a number of Mbit/s from 0.01 to 1,000,000 is, such as 2.5",
        "ShapedDevices.csv:3: Download Min Mbps: '0' is not right; a number of Mbit/s from 0.01 to 1,000,000 is, such as 2.5",
        "ShapedDevices.csv:3: Download Max Mbps: '1e9' is not right; a number of Mbit/s from 0.01 to 1,000,000 is, such as 2.5",
        'ShapedDevices.csv:4: Download Min Mbps: 60 is more than Download Max Mbps, 50',
        'ShapedDevices.csv:4: Upload Min Mbps: 11 is more than Upload Max Mbps, 10',
        "ShapedDevices.csv:5: Parent Node: there is no node 'Mats': did you mean Mast?",
        "ShapedDevices.csv:6: IPv4: '192.0.2.256' is not right: '192.0.2.256' does not appear to be an IPv4 or IPv6 network",
        "ShapedDevices.csv:6: IPv4: '192.0.2.5/24' is not right: its network is 192.0.2.0/24",
        "ShapedDevices.csv:6: IPv4: '2001:db8::1' is not right: it belongs into the column IPv6",
        "ShapedDevices.csv:7: Circuit ID: '' is not right; 1 to 200 printable characters are",
        "ShapedDevices.csv:9: Parent Node: circuit '7' is below 'Mast' in line 8",
        'ShapedDevices.csv:11: 2 cells; the header has 13']
    assert warnings == ["ShapedDevices.csv:9: Download Max Mbps: circuit '7' has other rates in line 8, which hold",
                        "ShapedDevices.csv:10: IPv4: circuit '8' has no address: nothing gets into its queue"]


@pytest.mark.parametrize('text, why', [
    ('', 'ShapedDevices.csv: no header; its first row names the columns: Circuit ID, Circuit Name, ...'),
    ('Circuit ID,IPv4,IPv6,Parent Node\n', 'ShapedDevices.csv:1: the header lacks download min mbps, upload min mbps, download max mbps, upload max mbps'),
    (f'# x\n{HEADER},MAC\n', 'ShapedDevices.csv:2: the header has twice: mac'),
    (f'{HEADER}\n{GOOD}\n8,"no end\n', 'ShapedDevices.csv:3: no CSV from here on: unexpected end of data'),
])
def test_lists_that_are_none(files, text, why):
    assert files(text=text)[1] == [why]


def test_overlaps(files):
    row = '{0},,1,,Mast,,"{1}",{2},1,1,5,5,'.format
    assert not files(row(1, '192.0.2.1, 192.0.2.0/29, 192.0.2.1', ''), row(2, '192.0.2.8/29', ''))[1]     # of one circuit
    _, errors, _ = files(row(1, '192.0.2.1', '2001:db8::/48'), row(2, '192.0.2.1', ''), row(3, '192.0.2.128/25', ''), row(4, '192.0.2.200', '2001:db8:0:7::1'))
    assert errors == ["ShapedDevices.csv:3: IPv4: 192.0.2.1 is circuit '1''s, too (line 2: 192.0.2.1)",
                      "ShapedDevices.csv:5: IPv4: 192.0.2.200 is circuit '3''s, too (line 4: 192.0.2.128/25)",
                      "ShapedDevices.csv:5: IPv6: 2001:db8:0:7::1 is circuit '1''s, too (line 2: 2001:db8::/48)"]


def test_all_that_is_wrong_with_sites(files):
    text = '''{
"A": {"downloadBandwidthMbps": "x", "type": "site", "children": {
  "B": {"downloadBandwidthMbps": 5, "uploadBandwidthMbps": true, "children": []},
  "A": {"downloadBandwidthMbps": 5, "uploadBandwidthMbps": 5}}},
"B": {"downloadBandwidthMbps": 5, "uploadBandwidthMbps": 5},
"C": 7,
"D": {"downloadBandwidthMbps": 5, "downloadBandwidthMbps": 6, "uploadBandwidthMbps": 5, "virtual": true},
"": {}
}'''
    _, errors, warnings = files(sites=text)
    assert errors == [
        "network.json:2: A.downloadBandwidthMbps: 'x' is not right; a number of Mbit/s from 0.01 to 1,000,000 is, such as 2.5",
        'network.json:2: A.uploadBandwidthMbps: it is missing', 'network.json:3: B.uploadBandwidthMbps: a number of Mbit/s is needed',
        'network.json:3: B.children: an object of sites is needed', 'network.json:4: A: the node is there twice, below itself: that is a cycle',
        'network.json:5: B: the node is there twice, also in line 3', 'network.json:6: C: an object with downloadBandwidthMbps and uploadBandwidthMbps is needed',
        'network.json:7: D.downloadBandwidthMbps: it is there twice', "network.json:8: name '' is not right; 1 to 200 printable characters are"]
    assert warnings == ['network.json:7: D: a virtual node is limited as any other']


def nested(depth):
    made = {}
    for n in range(depth, 0, -1):
        made = {f'S{n}': {'downloadBandwidthMbps': 5, 'uploadBandwidthMbps': 5, 'children': made}}
    return made


def test_depth(files):
    assert not files(sites=nested(6))[1]
    assert files(sites=nested(7))[1] == [
        "network.json:1: S7: more than 6 sites one below the other: HTB has 7 levels, and the last is the circuit's"]
    assert files(sites='{"a":' * 100_000)[1] in (['network.json: it is nested too deep'],
                                                 ['network.json:1: no JSON: Expecting value (column 500001)'])
    assert files(sites='[1]')[1][0].startswith('network.json:1: an object of sites is needed')
    assert files(sites='{"a": \n nope}')[1] == ['network.json:2: no JSON: Expecting value (column 2)']


def test_bounds(files, monkeypatch, tmp_path):
    monkeypatch.setattr(model, 'MOST_BYTES', 1 << 20)
    assert files(text=b'x' * (1 << 20 | 1))[1] == ['ShapedDevices.csv: it has more than 1 MiB']
    _, problems = read(str(tmp_path / 'nothing.csv'), str(tmp_path / 'nothing.json'))
    assert [str(each) for each in problems.errors] == ['nothing.csv: No such file or directory', 'nothing.json: No such file or directory']


def test_too_many(tmp_path):
    with open(tmp_path / 'd.csv', 'w', encoding='utf-8') as f:
        f.write(HEADER + '\n' + ''.join(f'{n},,1,,,,10.{n >> 16}.{n >> 8 & 255}.{n & 255},,1,1,2,2,\n' for n in range(65_001)))
    (tmp_path / 'n.json').write_text('{}', encoding='utf-8')
    _, problems = read(str(tmp_path / 'd.csv'), str(tmp_path / 'n.json'))
    assert [str(each) for each in problems.errors] == ['d.csv: 65,001 circuits; the most is 65,000', 'd.csv: 65,001 sites and circuits; the most is 65,000']


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(st.one_of(st.text(max_size=8), st.sampled_from(['1', '"', '192.0.2.1', 'Mast', '#', '7,', '\n', '2001:db8::/200', '٣'])), max_size=15), max_size=8),
       st.recursive(st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=5)),
                    lambda inner: st.dictionaries(st.sampled_from(['A', 'B', 'children', 'downloadBandwidthMbps', 'uploadBandwidthMbps', 'type']), inner, max_size=5)))
def test_any_input_is_read_or_refused(tmp_path_factory, rows, tree):
    where = tmp_path_factory.getbasetemp()
    (where / 'd.csv').write_bytes('\n'.join([HEADER, *(','.join(row) for row in rows)]).encode('utf-8', 'surrogatepass'))
    (where / 'n.json').write_text(json.dumps(tree), encoding='utf-8')
    network, problems = read(str(where / 'd.csv'), str(where / 'n.json'))
    assert all(str(each).isprintable() for each in problems.errors + problems.warnings)
    if not problems.errors:
        plan(network, BOX, states.assigned(network, {}, []))


def test_the_published_example():
    where = os.environ.get('OFQOS_LIBREQOS', '')
    found = [glob.glob(os.path.join(where, name)) for name in ('ShapedDevices*.csv', 'network*.json')] if where else [[], []]
    if not all(found):
        pytest.skip('$OFQOS_LIBREQOS names no directory with ShapedDevices*.csv and network*.json')
    network, problems = read(found[0][0], found[1][0])
    assert not problems.errors and len(network.circuits) > 1 and len(network.sites) > 1


def test_the_generator(tmp_path):
    network, problems = read(*isplist.write(str(tmp_path), 500, 20, 5))
    assert not problems.errors and not problems.warnings
    assert (len(network.circuits), len(network.sites)) == (500, 25)


# ---------------------------------------------------------------------------------------- plan

def network_of(*circuits, sites=(('North', '', 1000), ('Mast', 'North', 200), ('South', '', 300))):
    """circuits: id, parent, guarantee, ceiling in Mbit/s, addresses; the upload is half of it"""
    def pair(mbit):
        return Pair(int(mbit * 10 ** 6), int(mbit * 5 * 10 ** 5))
    return Network({name: Site(name, parent, 'site', pair(mbit)) for name, parent, mbit in sites},
                   {id_: Circuit(id_, '', parent, pair(least), pair(most), tuple(addresses)) for id_, parent, least, most, *addresses in circuits})


def v4(last, bits=32):
    return Prefix(4, 0xc0000200 + last, bits)


V6 = Prefix(6, 0x20010db8 << 96, 48)
THREE = network_of(('1', 'Mast', 2, 50, v4(1)), ('2', 'Mast', 1, 20, v4(2), V6), ('3', '', 5, 300, v4(8, 29)))


def test_classes():
    numbers = states.assigned(THREE, {}, [])
    assert numbers == {'unlisted': 16, 'site North': 17, 'site Mast': 18, 'site South': 19, 'circuit 1': 20, 'circuit 2': 21, 'circuit 3': 22}
    down, up = plan(THREE, BOX, numbers).trees
    assert [(each.number, each.parent, each.rate, each.ceil) for each in down.values()] == [
        (0, 0, 10 ** 9, 10 ** 9), (17, 0, 8_000, 10 ** 9), (18, 17, 8_000, 2 * 10 ** 8), (19, 0, 8_000, 3 * 10 ** 8),
        (20, 18, 2_000_000, 50_000_000), (21, 18, 1_000_000, 20_000_000), (22, 0, 5_000_000, 3 * 10 ** 8), (16, 0, 1_000_000, 10 ** 9)]
    assert [(each.number, each.parent, each.ceil) for each in up.values()] == [
        (0, 0, 10 ** 9), (17, 0, 5 * 10 ** 8), (18, 17, 10 ** 8), (19, 0, 15 * 10 ** 7), (20, 18, 25_000_000), (21, 18, 10 ** 7), (22, 0, 15 * 10 ** 7), (16, 0, 10 ** 9)]
    assert (down[20].quantum, down[22].quantum, up[21].quantum, down[18].quantum) == (6250, 37_500, 1600, 0)


def test_flows():
    numbers = states.assigned(THREE, {}, [])
    made = {(flow.match['in_port'][0], flow.priority, *(f'{name}={value:x}/{mask or 0:x}' for name, (value, mask) in flow.match.items() if name != 'in_port')): flow
            for flow in plan(THREE, BOX, numbers).flows}
    assert len(made) == 2 * (4 + 5)
    to, back = made[1, 1029, 'eth_type=800/0', 'ipv4_dst=c0000208/fffffff8'], made[2, 1029, 'eth_type=800/0', 'ipv4_src=c0000208/fffffff8']
    assert (to.queue, to.out, back.queue, back.out) == (22, 2, 22, 1)
    assert made[1, 1048, 'eth_type=86dd/0', f'ipv6_dst={V6.number:x}/{(1 << 128) - (1 << 80):x}'].queue == 21
    assert made[1, 900, 'eth_type=800/0'].queue == made[2, 900, 'eth_type=86dd/0'].queue == 16
    assert made[2, 800].queue is None and made[2, 800].out == 1


def test_guarantees_that_a_site_does_not_have(files):
    """HTB would give them all, and the site's ceiling would be nothing."""
    network = network_of(('1', 'Mast', 150, 200), ('2', 'Mast', 100, 200), ('3', 'South', 10, 20), sites=(('North', '', 100), ('Mast', 'North', 200), ('South', '', 300)))
    down, _ = plan(network, BOX, states.assigned(network, {}, [])).trees
    by_key = {each.key: each for each in down.values()}
    # Mast has 200 of 250: 80 %; North 99.992 of these 200: 49 %
    assert [by_key[f'circuit {n}'].rate for n in (1, 2, 3)] == [58_800_000, 39_200_000, 10_000_000]
    _, errors, warnings = files(*(f'{n},,1,,Mast,,192.0.2.{n},,60,1,70,10,' for n in range(4)))
    assert not errors and warnings == ['network.json:1: Mast.downloadBandwidthMbps: 240 Mbit/s are guaranteed below it, and it has 200 Mbit/s: '
                                       'each guarantee there becomes 83 % of what it was']


# ---------------------------------------------------------------------------------- difference

class Fake:
    """What the real switch does with these requests, and refuses"""

    def __init__(self):
        self.found = Found()

    def carry_out(self, steps):
        for step in steps:
            if isinstance(step.build, Request):
                assert wire.parse_qos(wire.qos(step.build, 7))[0] == step.build
                self.request(step.build)
            else:
                self.flow(step.build(7))

    def request(self, asked):
        way = BOX.ports.index(asked.port)
        classes, leaves = self.found.classes[way], self.found.leaves[way]
        number, below = asked.class_id, [n for n, has in classes.items() if n and has.parent == asked.class_id]
        if asked.scheduler.name != 'htb':
            assert number in classes and not below
            leaves.pop(number, None) if asked.action == 1 else leaves.__setitem__(number, asked.scheduler.name)
        elif asked.action == 1:
            assert number in classes and not below, f'class {number} has classes below it'
            del classes[number]
            leaves.pop(number, None)
        else:
            assert asked.action == 3 or number not in classes
            parent = asked.params.get('parent', 0)
            assert parent in classes or number == 0, f'{number} below {parent}, which is not there'
            assert parent not in leaves
            assert number not in classes or not below or classes[number].parent == parent, f'class {number} cannot move'
            classes[number] = Has(parent, asked.params['rate'], asked.params['ceil'], asked.params.get('quantum', 0), asked.params.get('name', ''))
            depth = 0
            while number:
                number, depth = classes[number].parent, depth + 1
            assert depth <= 8

    def flow(self, raw):
        command, = raw[25:26]
        priority, size = int.from_bytes(raw[30:32], 'big'), int.from_bytes(raw[50:52], 'big')
        match = flows._parse_match(raw, 52, 48 + size)
        made = flows.Flow(0, priority, int.from_bytes(raw[8:16], 'big'), match, *flows._parse_instructions(raw, 48 + (size + 7) // 8 * 8, len(raw)))
        others = [flow for flow in self.found.flows if flow.key() != made.key()]
        assert command == flows.ADD or len(others) < len(self.found.flows)
        self.found.flows = others + ([made] if command == flows.ADD else [])


def said(made):
    return made.left, made.strangers, sorted((step.sign, step.key, step.what, step.text, wire.qos(step.build, 7) if isinstance(step.build, Request) else step.build(7))
                                             for step in made.steps)


class Lab:
    def __init__(self):
        self.fake, self.numbers = Fake(), {}
        self.known = None

    def plan(self, network, box=BOX):
        numbers = states.assigned(network, self.numbers, [{n: has.parent for n, has in tree.items()} for tree in self.fake.found.classes])
        return difference(plan(network, box, numbers), self.fake.found, box, {number: key for key, number in self.numbers.items()}), numbers

    def apply(self, network, box=BOX):
        made, numbers = self.plan(network, box)
        if self.known and self.known.box == box and list(self.known.network.sites.items()) == list(network.sites.items()) and self.known.numbers == self.numbers:
            assert said(self.known.difference(network, numbers)) == said(made)      # without reading what the switch has
        self.fake.carry_out(made.steps)
        self.numbers = numbers
        self.known = Known(None, box, network, numbers, Changes(0, 0), made.strangers, made.left)
        assert not self.plan(network, box)[0].steps         # it has it all
        return made.steps


def changed(network, id_, **fields):
    circuits = {**network.circuits}
    circuits[id_] = Circuit(**{**circuits[id_].__dict__, **fields})
    return Network(network.sites, circuits)


def test_only_what_changes():
    lab = Lab()
    assert len(lab.apply(THREE)) == 2 * (8 + 9)
    steps = lab.apply(changed(THREE, '1', ceiling=Pair(60_000_000, 25_000_000)))
    assert [(step.sign, step.key, step.text) for step in steps] == [('~', 'circuit 1', 'down 2mbit to 60mbit (was 2mbit to 50mbit)')]
    steps = lab.apply(changed(THREE, '1', addresses=(v4(1), v4(3))))
    assert [(step.sign, step.what, step.text) for step in steps] == [
        ('~', 'class', 'down 2mbit to 50mbit (was 2mbit to 60mbit)'), ('+', 'flow', 'to 192.0.2.3'), ('+', 'flow', 'from 192.0.2.3')]
    before = dict(lab.numbers)
    steps = lab.apply(Network(THREE.sites, {id_: circuit for id_, circuit in THREE.circuits.items() if id_ != '2'}))
    assert [(step.sign, step.what, step.key) for step in steps if step.key == 'circuit 2'] == [
        ('-', 'class', 'circuit 2')] * 2 + [('-', 'flow', 'circuit 2')] * 4
    lab.apply(THREE)
    assert {key: number for key, number in before.items() if lab.numbers[key] != number} == {}      # 2 got its number, which is free


def test_leaves():
    lab, other = Lab(), Box(BOX.ports, BOX.total, BOX.unlisted, 'fq_codel')
    assert sum(step.what == 'leaf' for step in lab.apply(THREE, other)) == 8
    assert {step.text for step in lab.apply(THREE)} == {'down without fq_codel', 'up without fq_codel'}


def test_a_site_that_moves():
    lab = Lab()
    lab.apply(THREE)
    before = dict(lab.numbers)
    sites = {'South': Site('South', '', 'site', THREE.sites['South'].ceiling), 'North': Site('North', '', 'site', THREE.sites['North'].ceiling),
             'Mast': Site('Mast', 'South', 'site', THREE.sites['Mast'].ceiling)}
    lab.apply(Network(sites, THREE.circuits))
    assert {key for key in before if before[key] != lab.numbers[key]} == {'site Mast'}       # circuits keep theirs


def test_what_others_made_stays():
    lab = Lab()
    lab.fake.found.classes[0][17] = Has(0, 1000, 1000, 0, 'mine')
    lab.apply(THREE)
    assert lab.numbers['site North'] == 18 and lab.fake.found.classes[0][17].name == 'mine'
    assert lab.plan(THREE)[0].left == 1


def test_a_lost_state_file():
    lab = Lab()
    lab.apply(THREE)
    found = recovered(THREE, lab.fake.found.classes[0])
    assert found == lab.numbers


names = st.sampled_from('abcdef')


@st.composite
def networks(draw):
    sites = {}
    for name in draw(st.lists(names, unique=True, max_size=5)):
        parents = [''] + [other for other in sites if depth_of(sites, other) < 5]
        sites[name] = Site(name, draw(st.sampled_from(parents)), 'site', Pair(*draw(st.tuples(*[st.sampled_from([10 ** 6, 10 ** 7, 10 ** 8])] * 2))))
    circuits = {}
    for n, id_ in enumerate(draw(st.lists(names, unique=True, max_size=6))):
        rate = draw(st.sampled_from([10 ** 6, 2 * 10 ** 6]))
        circuits[id_] = Circuit(id_, '', draw(st.sampled_from(['', *sites])), Pair(rate, rate), Pair(10 ** 7, rate), tuple(draw(st.sampled_from([
            [v4(n)], [v4(n), Prefix(6, n, 128)], [v4(n * 8, 29)], []]))))
    return Network(sites, circuits)


def depth_of(sites, name):
    return 1 + depth_of(sites, sites[name].parent) if name else 0


@settings(max_examples=150, deadline=None)
@given(networks(), st.data())
def test_circuits_change_without_reading(network, data):
    """Lab.apply() compares what is worked out from memory with what is worked out from all that the switch has."""
    lab = Lab()
    lab.fake.found.classes[0][0] = lab.fake.found.classes[1][0] = Has(0, 10 ** 9, 10 ** 9, 0, '')
    lab.fake.found.classes[0][18] = Has(0, 1000, 1000, 0, 'mine')
    lab.apply(network)
    for _ in range(3):
        other = data.draw(networks())
        lab.apply(Network(network.sites, {id_: replace(each, parent=each.parent if each.parent in network.sites else '') for id_, each in other.circuits.items()}))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(networks(), st.sampled_from(['none', 'pfifo']), st.sampled_from(['', 'before', 'behind'])), min_size=2, max_size=4))
def test_any_network_becomes_any_other(every):
    """In one bundle, whose messages a switch takes in this order; what stays keeps its number."""
    lab = Lab()
    for network, leaf, cut in every:
        before = dict(lab.numbers)
        box = Box(BOX.ports, BOX.total, BOX.unlisted, leaf)
        if cut == 'before':         # the file was written, the bundle was not sent
            lab.numbers = states.between(before, lab.plan(network, box)[1])
        lab.apply(network, box)
        wanted = plan(network, box, lab.numbers)
        for way in 0, 1:
            classes = lab.fake.found.classes[way]
            assert set(classes) == set(wanted.trees[way])
            assert all(sum(has.rate for n, has in classes.items() if n and has.parent == number) <= each.ceil for number, each in classes.items())
        assert {key: number for key, number in before.items() if key.startswith('circuit') and lab.numbers.get(key, number) != number} == {}
        kept = states.between(before, lab.numbers)
        assert set(kept.values()) == {*before.values(), *lab.numbers.values()} and len(set(kept.values())) == len(kept)
        if cut == 'behind':         # the bundle was carried out, the file was not written again
            lab.numbers = kept
            assert not lab.plan(network, box)[0].steps


# --------------------------------------------------------------------------------------- state

def test_the_state_file(tmp_path):
    path, made = str(tmp_path / 'shaper.json'), states.State('0000000000000001', {'core': 'eth1'}, states.assigned(THREE, {}, []), THREE)
    assert states.load(path) == states.State()
    states.save(path, made)
    assert states.load(path) == made and os.stat(path).st_mode & 0o777 == 0o600
    for who, why in ('', 'another apply is under way'), ('a service has it', 'a service has it'):
        with states.Lock(path, who), pytest.raises(ValueError, match=why):
            states.Lock(path, '')


@pytest.mark.parametrize('text', ['', '{}', '[]', 'null', '{"version": 2}', '{"version": 1, "switch": "1", "box": {}, "numbers": {"a": 3}, "sites": [], "circuits": []}',
                                  '{"version": 1, "switch": "1", "box": {}, "numbers": {"a": 20, "b": 20}, "sites": [], "circuits": []}',
                                  '{"version": 1, "switch": "1", "box": {}, "numbers": {}, "sites": [["a"]], "circuits": []}'])
def test_state_files_that_are_none(tmp_path, text):
    path = tmp_path / 'shaper.json'
    path.write_text(text, encoding='utf-8')
    with pytest.raises(ValueError, match='move it away'):
        states.load(str(path))


def test_what_is_named(files):
    network, _, _ = files(GOOD)
    for word in '7', 'Mill Lane', '192.0.2.7', '2001:db8:7:1::5', '192.0.2.0/24':
        assert words.find(network, word).id == '7'
    assert words.find(network, 'Mast').name == 'Mast'
    for word, why in ('192.0.2.8', 'in no circuit'), ('Mats', 'did you mean Mast'):
        with pytest.raises(ValueError, match=why):
            words.find(network, word)


# -------------------------------------------------------------------------------- command line

def test_check(files, tmp_path, capsys, monkeypatch):
    files(GOOD)
    monkeypatch.chdir(tmp_path)
    assert cli.main(['check']) == 0 and capsys.readouterr().out == 'right: 3 sites, 1 circuit, 2 addresses\n'
    assert cli.main(['check', 'ShapedDevices.csv']) == 1 and 'both files' in capsys.readouterr().err
    files(GOOD.replace('50', 'x'))
    assert cli.main(['--json', 'check']) == 1
    found = json.loads(capsys.readouterr().out)
    assert found['errors'][0] == {'file': 'ShapedDevices.csv', 'line': 2, 'field': 'Download Max Mbps', 'why': found['errors'][0]['why'],
                                  'text': 'ShapedDevices.csv:2: Download Max Mbps: ' + found['errors'][0]['why']}
    assert cli.main(['apply', '--state', str(tmp_path / 'state.json'), '--connect', 'unix:/nowhere']) == 1 and 'Download Max' in capsys.readouterr().err


def test_a_switch_that_is_not_there(files, tmp_path, capsys, monkeypatch):
    files(GOOD)
    monkeypatch.chdir(tmp_path)
    for options, why in ([], 'name the switch'), (['--connect', 'unix:/nowhere'], 'No such file'), (['--connect', 'x'], 'is no unix:PATH'), \
            (['--accept', 'tcp:127.0.0.1:0', '--wait', '0.1'], 'no switch has connected'), (['--connect', 'unix:/x', '--ca-cert', 'x'], 'TLS'):
        assert cli.main(['plan', '--state', str(tmp_path / 'state.json'), *options]) == 1
        assert why in capsys.readouterr().err
    assert cli.main(['show', '--state', str(tmp_path / 'state.json')]) == 1 and 'nothing was applied yet' in capsys.readouterr().err


PAGE = REPOSITORY / 'docs/how-to/subscribers.md'


@pytest.mark.parametrize('line', re.findall(r'^    (?:sudo )?ofqos (shaper .*)$', PAGE.read_text(encoding='utf-8') if PAGE.exists() else '', re.M))
def test_commands_of_the_page(line):
    cli.parser().parse_args(shlex.split(line, comments=True)[1:])
