# SPDX-License-Identifier: Apache-2.0
"""The README, docs/how-to/dpctl.md, docs/how-to/recipes.md, docs/how-to/real-links.md, docs/how-to/coming-from.md and docs/how-to/network.md: every command of ours, in
their order, on a switch with the ports that they name.  Then hosts at these ports send packets: PACKETS says who must
reach whom, and at which rate.
"""
import pytest

from support.documents import (FRAME, NamedPorts, Packets, Rate, is_whole, links_up, needs_more, of_line,
                               read, titles_and_commands, try_section)

DOCUMENTS = ['README.md', 'docs/how-to/dpctl.md', 'docs/how-to/recipes.md', 'docs/how-to/real-links.md', 'docs/how-to/coming-from.md', 'docs/how-to/network.md']
ONLY_OURS = DOCUMENTS[2:-1]         # their commands are all dpctl's and the daemon's
# What is typed at other programs, and where it is tried.
NAT = 'tests/netns/test_recipe_nat.py'
ELSEWHERE = {'mn ': 'tests/mininet', 'mininet> ': 'tests/mininet', 'ip ': NAT, 'nft ': NAT}
WITH_OTHER_HOSTS = {'A-home-router-with-NAT': NAT}
# Section -> what its switch then carries.
PACKETS = {
    'Two-minutes': Packets([(1, 2)], [Rate(1, 2, 5201, 10)]),
    'Use-it': Packets([(1, 2)]),
    'A-home-router:-calls-first,-downloads-last': Packets([(1, 2), (2, 3)], [Rate(2, 1, 9, 19)]),
    'Tenants-who-share-a-link': Packets(
        [(2, 1), (3, 1)], [Rate(2, 1, 9, 30)], {1: '10.9.0.1/8', 2: '10.1.0.1/8', 3: '10.2.0.1/8'}),
    'Video-beside-bulk-traffic': Packets([(1, 2)], [Rate(1, 2, 9, 50, offered=1.3)]),
    'A-classroom': Packets([(1, 2)], [Rate(2, 1, 9, 100, offered=1.2)], one_way=[(3, 4)]),
    'A-DSL-or-cable-line': Packets([(1, 2), (2, 3)], [Rate(2, 1, 9, 9.5 * FRAME / (53 * 27))]),
    'CAKE-whole': Packets([(1, 2)]),
    'A-link-whose-rate-changes': Packets([(1, 2)]),
    'Hosts-with-a-part-each': Packets([(1, 2), (2, 3)]),
    'Marks-and-names': Packets([(1, 2), (2, 3)]),
    'A-policy-in-words': Packets([(1, 2), (2, 3)]),
    'Is-the-promise-kept?': Packets([(1, 2), (2, 3)]),      # its queue has no flow
    # its last flow sends TCP for 10.0.0.1 and metered UDP to port 2: the meter drops what is above 1 Mbit/s
    'Open-vSwitch': Packets([(1, 2), (2, 3)], [Rate(1, 2, 9, 1)]),
    'A-Linux-bridge,-and-tc': Packets([(1, 2), (2, 3)], [Rate(1, 2, 9, 20, offered=1.3)]),      # what comes in by eth1 is shaped
    'BOFUSS': Packets(one_way=[(1, 2)]),
    'QoSFlow': Packets(one_way=[(2, 1)]),
    'sqm-scripts': Packets([(1, 2), (2, 3)]),       # its last command takes the queues away
    'LibreQoS': Packets([(1, 2), (2, 3)]),
    'One-switch': Packets([(1, 2), (2, 3)], [Rate(2, 3, 9, 10)]),
}


def sections():
    found = []
    for document in DOCUMENTS:
        for title, commands in titles_and_commands(document):
            if title not in WITH_OTHER_HOSTS and any(c.startswith('ofdatapath') for c in commands):
                found.append(pytest.param(title, commands, id=title,
                                          marks=[pytest.mark.testkernel] * needs_more(commands)))
    return found


@pytest.fixture(scope='module', name='named')
def named_ports():
    with NamedPorts(4) as t:
        yield t


@pytest.mark.every
@pytest.mark.parametrize('title,commands', sections())
def test_a_section(named, title, commands):
    links_up(named)
    ours = [c for c in commands if is_whole(c)]
    assert len(ours) >= 4
    try_section(named, ours, PACKETS[title])


def test_no_command_is_left_out():
    for document in ONLY_OURS:
        for line in read(document).splitlines():
            for command in of_line(line):
                if line.startswith('    ') and not is_whole(command):
                    assert command.startswith(tuple(ELSEWHERE)), command


def test_every_section_sends_packets():
    assert {p.id for p in sections()} == set(PACKETS)
    assert all(packets.pings or packets.one_way for packets in PACKETS.values())
