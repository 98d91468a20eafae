# SPDX-License-Identifier: Apache-2.0
"""The command blocks of the other documents: RUN's are carried out on a switch of four ports that stands ready, and
then packets are sent; ELSEWHERE says who carries out the others, or what they need.  A block is in one of the two.

SWITCH is br0, at /run/ofqos/br0.sock, which also listens at /tmp/s1.
"""
import glob
import os
import re
from typing import NamedTuple

import pytest

from support.documents import (NamedPorts, Packets, Rate, is_whole, links_up, needs_more, titles_and_commands,
                               try_section)
from support.topo import REPOSITORY

RECIPES = ['docs/how-to/dpctl.md', 'docs/how-to/recipes.md', 'docs/how-to/real-links.md', 'docs/how-to/coming-from.md']      # test_recipes.py runs each line
A_BLOCK = re.compile(r'(ip netns exec \S+ )?(dpctl|ofdatapath|ofprotocol|ofqos-[a-z]+|uci|mn|systemctl) ')
DAEMON = 'ofdatapath -i eth1,eth2,eth3,eth4 --fail=open punix:/run/ofqos/br0.sock punix:/tmp/s1'
EF = 0xb8
BETWEEN = [(1, 2), (2, 3)]
VOICE = Rate(2, 1, 9, 5, tos=EF)
QUEUE = ['dpctl br0 qos-htb cmd=add,port=1,class=10,rate=5mbit,ceil=5mbit']
TO_QUEUE = QUEUE + ['dpctl br0 qos-map queue=10,dscp=ef then=normal']


class Block(NamedTuple):
    packets: Packets
    before: list = []           # commands
    own: bool = False           # it starts its switch itself
    files: dict = {}
    replace: dict = {}          # words that stand for something else, and paths of a whole machine
    without: dict = {}          # beginnings of commands -> who tries these


RUN = {
    'README.md': {'Use-it': Block(Packets(BETWEEN))},
    'docs/how-to/bandwidth-groups.md': {
        'Bandwidth-groups': Block(Packets(BETWEEN, [Rate(2, 1, 9, 0.8)])),
        'Connections': Block(Packets(BETWEEN, [Rate(2, 1, 9, 0.8)]), before=[
            'dpctl br0 bw-total port=1,in=100kBps,out=100kBps', 'dpctl br0 bw-group port=1 group=3,share=30%']),
    },
    'docs/explanation/control-channel.md': {'Control-connections': Block(
        Packets([(1, 2)]), replace={'/run/s1': '/tmp/s1'}, own=True)},
    'docs/how-to/dpctl-qos.md': {
        'Queues-from-the-command-line': Block(Packets(BETWEEN, [Rate(2, 1, 9, 20)])),
        'Profiles': Block(Packets(BETWEEN, [Rate(2, 1, 9, 20)]), replace={'FILE': 'half.qos', '1,3,5-8': '1,3-4'}, files={
            'half.qos': 'set up=10mbit\nhtb class=0,rate=$up\nhtb class=10,rate=50%,ceil=100%\nhtb default=10\n'}),
        "What-a-tree-can't-keep": Block(Packets([(1, 2)], [Rate(1, 2, 9, 10)])),
        'Which-traffic-goes-where': Block(Packets(BETWEEN)),
        'Marking': Block(Packets(BETWEEN, [VOICE]), before=QUEUE),
        'Names': Block(Packets(BETWEEN)),
        'Beside-a-controller': Block(Packets(BETWEEN, [VOICE]), before=QUEUE + [
            'dpctl br0 flow-mod cmd=add,table=1,prio=0 apply:output=normal']),
        'A-queue-for-each-host': Block(Packets(BETWEEN)),
        'A-link-whose-rate-changes': Block(Packets(BETWEEN)),
    },
    'docs/how-to/explain.md': {
        'why-dropped': Block(Packets(BETWEEN), replace={'seconds=5': 'seconds=1'}),
        'A-mirror-made-of-flows': Block(Packets([(1, 2)], one_way=[(1, 2), (1, 3), (2, 1), (2, 3)])),
    },
    'docs/explanation/ingress.md': {
        'Queues-for-what-enters-by-a-port': Block(Packets([(1, 2)], [Rate(1, 2, 9, 100, offered=1.2)])),
    },
    'docs/how-to/processors.md': {'Spread-the-load-over-processors': Block(Packets(BETWEEN))},
    'docs/how-to/round-trips.md': {
        'How-long-packets-take': Block(Packets(BETWEEN)),
        'Promise-a-delay': Block(Packets(BETWEEN), without={'dpctl monitor delay': 'tests/netns/test_latency.py'}),
    },
    'docs/how-to/slices.md': {'Queues': Block(Packets(BETWEEN))},
    'docs/how-to/state.md': {
        'Save-and-restore': Block(Packets(BETWEEN, [VOICE]), before=TO_QUEUE, replace={'/var/lib/ofqos/': '/tmp/'}),
        'Restart-without-a-gap': Block(Packets(BETWEEN, [VOICE]), before=TO_QUEUE),
    },
    'docs/reference/logging.md': {'Levels': Block(Packets(BETWEEN))},
    'docs/reference/metrics.md': {'Metrics': Block(Packets(BETWEEN, [VOICE]), before=TO_QUEUE)},
    'docs/how-to/mininet.md': {
        "dpctl's-old-commands": Block(Packets([(3, 4)]), before=['dpctl br0 add-meter meter=1,kbps,band=type=drop,rate=1000']),
    },
    'docs/how-to/openconfig.md': {"OpenConfig's-models": Block(Packets(BETWEEN, [VOICE]), before=TO_QUEUE)},
    'docs/how-to/top.md': {
        'dpctl-top': Block(Packets(BETWEEN), without={'dpctl --json top': 'tests/netns/test_metrics.py'}),
    },
    'docs/how-to/trace.md': {
        'Trace-a-packet': Block(Packets(BETWEEN), without={
            'dpctl SWITCH trace in_port=1 web.pcap': 'tests/netns/test_trace.py',
            'dpctl SWITCH --json trace': 'tests/netns/test_trace.py'}),
    },
}
# What carries out a block: a test, or a word on why none does.
ELSEWHERE = {
    'README.md': {'Two-minutes': 'tests/netns/test_recipes.py'},
    'docs/reference/configuration.md': {'The-configuration-file': 'tests/netns/test_config.py'},
    'docs/how-to/cloud.md': {'A-cloud-in-fifteen-minutes': 'tests/netns/test_cni.py', 'Docker': 'tests/netns/test_docker.py',
                             'Look': 'tests/controllers/test_exporter.py'},
    'docs/how-to/containers.md': {'Kubernetes-and-Podman': 'tests/netns/test_cni.py', 'Beside-another-plugin': 'tests/netns/test_cni_chained.py'},
    'docs/how-to/controllers.md': {'os-ken-and-Ryu': 'tests/controllers/test_oskenapp.py', 'Faucet': 'tests/controllers/test_faucet.py'},
    'docs/how-to/explain.md': {'capture': 'tests/netns/test_capture.py', 'A-file-through-the-switch': 'tests/netns/test_replay.py'},
    'docs/how-to/exporter.md': {'Metrics-of-many-switches': 'tests/controllers/test_exporter.py'},
    'docs/how-to/fail-to-wire.md': {'Fail-to-wire': 'tests/netns/test_fail_to_wire.py'},
    'docs/reference/extensions.md': {'What-a-commit-does': 'tests/netns/test_bundles.py'},
    'docs/how-to/install.md': {'A-switch-that-starts-at-boot': 'tests/packages/boot.sh', 'From-source': 'tests/packages/source.sh'},
    'docs/reference/metrics.md': {'By-node_exporter': 'tests/controllers/test_prometheus.py'},
    'docs/how-to/mininet.md': {
        'Mininet,-and-scripts-for-other-switches': 'tests/mininet/test_mininet.py',
        'OfqosSwitch': 'tests/mininet/ofqos_switch.py',
        'Queues:-with-and-without---no-slicing': 'tests/mininet/links.py',
        'ofprotocol': 'a synopsis'},
    'docs/how-to/network.md': {
        'One-switch': 'tests/netns/test_recipes.py', 'One-file-for-all': 'tests/controllers/test_network.py',
        'The-policy-file': 'tests/controllers/test_network_policy.py', 'Commands': 'tests/controllers/test_network.py'},
    'docs/reference/ofdatapath.md': {"The-daemon's-options": 'a synopsis'},
    'docs/explanation/offload.md': {
        "The-kernel-as-the-switch's-cache": 'tests/netns/test_offload.py',
        'What-is-in-the-kernel-now': 'tests/netns/test_offload.py'},
    'docs/reference/openflow10.md': {'OpenFlow-1.0,-line-by-line': 'tests/netns/test_openflow10.py'},
    'docs/how-to/openwrt.md': {
        'Configure': 'tests/unit/run/test_openwrt.py', 'LAN-ports-as-a-switch': 'tests/unit/run/test_openwrt.py'},
    'docs/how-to/ovsdb.md': {
        "Open-vSwitch's-database,-for-queues": 'tests/controllers/test_ovsdb.py', 'rest_qos': 'tests/controllers/test_ovsdb_restqos.py'},
    'docs/how-to/reservations.md': {
        'Reservations-along-a-whole-path': 'tests/controllers/test_reservations.py',
        'A-lab-on-one-machine': 'tests/controllers/test_reservations.py', 'What-is-asked-for': 'a synopsis'},
    'docs/how-to/state.md': {'At-the-start-and-the-end': 'tests/netns/test_state.py'},
    'docs/how-to/subscribers.md': {
        "An-ISP's-customers": 'tests/netns/test_shaper.py', 'Behind-PPPoE-and-MPLS': 'tests/netns/test_inside.py',
        'While-the-switch-is-down': 'tests/netns/test_fail_to_wire.py'},
    'docs/how-to/evaluate.md': {'Measure-it-beside-the-Linux-bridge': 'tests/netns/test_walks.py'},
    'docs/how-to/tenants.md': {"The-tenant's-own-door": 'tests/netns/test_tenants.py', 'Inside-a-pod': 'tests/netns/test_cni_tenants.py'},
    'docs/how-to/tls.md': {'TLS': 'tests/netns/test_tls.py'},
    'docs/how-to/trace.md': {'An-example': 'tests/netns/test_trace.py', 'A-mistake': 'tests/netns/test_trace.py'},
    'docs/how-to/vlans.md': {'Access-ports-and-trunks': 'tests/netns/test_vlans.py'},
    'docs/how-to/ofqosd.md': {'All-services-in-one': 'tests/packages/boot.sh'},
    'docs/how-to/web.md': {'In-the-browser': 'tests/controllers/test_web.py', 'History': 'tests/controllers/test_history.py'},
    'docs/tutorials/first-application.md': {'Run-it': 'tests/netns/test_walks.py'},
    'docs/tutorials/home-line.md': {name: 'tests/netns/test_walks.py' for name in (
        'A-home,-a-router-and-a-slow-line', 'Let-packets-wait-in-the-router', 'The-other-way', 'Behind-NAT',
        'NAT-in-the-box-before-the-switch', "NAT-on-the-switch's-machine")},
    'docs/tutorials/first-queue.md': {name: 'tests/netns/test_walks.py' for name in ('A-switch', 'A-queue', 'Why')},
}


def shell(commands):
    return ''.join(f'{command} >&2 || exit 6\n' for command in commands)


def blocks(document):
    """title -> its commands that are ours"""
    found = {}
    for title, commands in titles_and_commands(document, '#+', tables=False):
        ours = [c for c in commands if A_BLOCK.match(c)]
        if ours:
            found.setdefault(title, []).extend(ours)
    return found


def all_documents():
    return ['README.md', *sorted(os.path.relpath(p, REPOSITORY) for p in glob.glob(os.path.join(REPOSITORY, 'docs/**/*.md'), recursive=True))]


def to_run():
    for document, titles in RUN.items():
        for title, block in titles.items():
            commands = [c for c in blocks(document)[title] if not c.startswith(tuple(block.without) or '-')]
            yield pytest.param(commands, block, id=f'{document[5:-3]}:{title}',
                               marks=[pytest.mark.testkernel] * needs_more(commands))


@pytest.fixture(scope='module', name='named')
def named_ports():
    with NamedPorts(4) as t:
        yield t


@pytest.mark.every
@pytest.mark.parametrize('commands,block', to_run())
def test_a_block(named, commands, block):
    links_up(named)
    assert all(is_whole(c) for c in commands), commands
    for word, other in {'SWITCH': 'br0', **block.replace}.items():
        commands = [c.replace(word, other) for c in commands]
    start = '' if block.own else f'serve {DAEMON}\n'
    before = ''.join(f"cat > {name} <<'END'\n{text}END\n" for name, text in block.files.items())
    try_section(named, commands, block.packets, start + before + shell(block.before))


def test_every_block_is_tried():
    """A new block goes into RUN, or into ELSEWHERE with its test."""
    there = {d: set(blocks(d)) for d in all_documents() if d not in RECIPES}
    named = {d: set(RUN.get(d, {})) | set(ELSEWHERE.get(d, {})) for d in {*RUN, *ELSEWHERE}}
    assert {d: titles for d, titles in there.items() if titles} == named


def test_the_other_tests_are_there():
    named = [who for titles in ELSEWHERE.values() for who in titles.values()]
    named += [who for titles in RUN.values() for block in titles.values() for who in block.without.values()]
    for who in named:
        assert who == 'a synopsis' or os.path.exists(os.path.join(REPOSITORY, who)), who


def test_every_block_sends_packets():
    assert all(block.packets.pings for titles in RUN.values() for block in titles.values())
