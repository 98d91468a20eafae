# SPDX-License-Identifier: Apache-2.0
"""What the switch is expected to reach: rows of ratios between two figures of the same round (or of
a figure alone), the bound, and whether it is a least or a most."""
from collections import namedtuple

from measures import TESTS

Row = namedtuple('Row', 'what sense bound test subject figure to_test to_subject')


def row(what, sense, bound, test, subject='ours', to=None, to_test=None, figure=None):
    if to_test and not to:
        to = subject
    return Row(what, sense, bound, test, subject, figure or TESTS[test].units,
               to_test or (test if to else None), to)


def least(what, bound, test, **kw):
    return row(what, '>=', bound, test, **kw)


def most(what, bound, test, **kw):
    return row(what, '<=', bound, test, **kw)


REQUIRED = [
    least('TCP, offloads on, 1 stream: to the bridge', 0.75, 'tcp1', to='bridge'),
    least('... to OVS userspace-tso', 1.15, 'tcp1', to='ovs-tso'),
    least('TCP, offloads on, 4 streams: to the bridge', 0.45, 'tcp4', to='bridge'),
    least('... to OVS userspace-tso', 1.15, 'tcp4', to='ovs-tso'),
    least('TCP, offloads off, 1 stream: to the bridge', 1.0, 'tcp1-off', to='bridge'),
    least('... to OVS', 4, 'tcp1-off', to='ovs'),
    least('TCP, offloads off, 4 streams: to the bridge', 0.8, 'tcp4-off', to='bridge'),
    least('... to OVS', 4, 'tcp4-off', to='ovs'),
    least('64-byte packets: to the bridge', 1.3, 'small', to='bridge'),
    least('... to OVS', 2.5, 'small', to='ovs'),
    least('... to OVS on AF_XDP ports', 1.0, 'small', to='ovs-xdp'),
    least('10,000 microflows: to 1 microflow', 0.9, 'small10k', to_test='small'),
    least('... with 1,000,000 flows of mixed masks', 0.9, 'flows1m', to_test='small'),
    least('each packet a new microflow: to 1 microflow', 0.5, 'churn', to_test='small'),
    least('... with 1,000,000 flows of mixed masks', 0.5, 'churn1m', to_test='small'),
    most('round trip, p50: to the bridge', 2.3, 'rtt', to='bridge'),
    most('round trip, p99: to the bridge', 3, 'rtt', to='bridge', figure='us p99'),
    least('TCP, 1 queue of the link\'s rate: to none', 0.99, 'link1', to_test='link0'),
    least('TCP, 1 queue, link without limit: to none', 0.99, 'queues1', to_test='queues0'),
    least('TCP, 1,024 queues, 1 in use: to none', 0.95, 'queues1024', to_test='queues0'),
    least('TCP, 1,024 queues in use: to none', 0.95, 'used1024', to_test='used0'),
    least('flow-mods/s acknowledged, 1,000,000 flows', 1e6, 'mods1m'),
    most('bytes a flow', 250, 'mods1m', figure='bytes/flow'),
    most('MB with 1,000,000 flows', 300, 'mods1m', figure='MB'),
    least('2 workers, 2 ports: to 1', 1.6, 'workers', subject='two', to='one'),
    least('2 workers, 1 port: to 1', 1.6, 'fanout', subject='fanout', to='one'),
]


def needed():
    """{test: the subjects that are judged or compared with}"""
    out = {}
    for r in REQUIRED:
        out.setdefault(r.test, set()).add(r.subject)
        if r.to_subject:
            out.setdefault(r.to_test, set()).add(r.to_subject)
    return {t: out[t] for t in TESTS if t in out}


def verdicts(samples):
    """[(row, measured or None, holds)] of what has been measured"""
    out = []
    for r in REQUIRED:
        got = samples.between((r.test, r.subject, r.figure), (r.to_test, r.to_subject, r.figure)) \
            if r.to_subject else samples.median(r.test, r.subject, r.figure)
        if got is not None:
            out.append((r, got, got >= r.bound if r.sense == '>=' else got <= r.bound))
    return out
