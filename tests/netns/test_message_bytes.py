# SPDX-License-Identifier: Apache-2.0
"""The message that docs/reference/qos-extension.md shows to a controller's programmer: its bytes and its Python, sent again as by one that reconnects."""
import os
import re
import struct

from support import of13, tc
from support.topo import eth, udp4

PAGE = os.path.join(os.path.dirname(__file__), '..', '..', 'docs', 'reference', 'qos-extension.md')


def example():
    """-> the message's bytes, the values that struct.pack gets"""
    with open(PAGE, encoding='utf-8') as f:
        text = f.read().partition('## One request, byte by byte')[2].partition('\n## ')[0]
    lines = re.findall(r'^    ((?:[0-9a-f]{2} {1,2})+) ', text, re.M)
    fmt, values = re.search(r"struct\.pack\('([^']*)', ([^)]*)\)", text).groups()
    return bytes.fromhex(''.join(lines)), struct.pack(fmt, *(int(v) for v in values.split(', ')))


def test_it_can_be_sent_again(switch):
    message, body = example()
    assert len(message) == 56 and message[16:] == body
    for _ in range(2):
        with switch.connect() as c:
            c.ok(message[1], message[8:])
            c.flow(of13.apply_actions(of13.set_queue(10), of13.output(2)))
    row = tc.classes(switch.topo.switch_ns, 'p2')[10]
    assert (row['options']['rate'], row['options']['ceil']) == (6_000_000, 10_000_000)
    with switch.topo.host(1) as one, switch.topo.host(2) as two, switch.connect() as c:
        one.send(eth(udp4()))
        assert two.recv() == eth(udp4())
        assert c.queue_stats(2, 10)[2, 10]['tx_packets'] == 1


def test_add_says_what_to_use_instead(switch):
    for words in (('qos-htb', 'cmd=add,port=2,class=10,rate=1mbit'), ('qos-pfifo', 'cmd=add,port=2,class=10,limit=9'),
                  ('qos-htb', 'cmd=add,port=3,class=0,rate=1mbit')):
        switch.dpctl(*words)
        done = switch.dpctl(*words, check=False)
        assert done.returncode == 1 and 'already: use REPLACE' in done.stderr and 'cmd=replace' in done.stderr
        assert switch.dpctl(words[0], words[1].replace('add', 'replace')).returncode == 0
