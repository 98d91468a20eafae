# SPDX-License-Identifier: Apache-2.0
"""What the switch is expected to reach: rows of ratios between two figures of the same round (or of
a figure alone), the bound (None: it is only told), and whether it is a least or a most."""
from collections import namedtuple

from measures import KINDS, SUPER, TESTS
from subjects import before

Row = namedtuple('Row', 'what sense bound test subject figure to_test to_subject to_figure')


def row(what, sense, bound, test, subject='ours', to=None, to_test=None, figure=None,
        to_figure=None):
    if (to_test or to_figure) and not to:
        to = subject
    figure = figure or TESTS[test].units
    if subject == 'userspace' and not what.startswith('...'):
        what = 'user space alone: ' + what
    return Row(what, sense, bound, test, subject, figure, to_test or (test if to else None), to,
               to_figure or figure)


def least(what, bound, test, subject='ours', **kw):
    return row(what, '>=', bound, test, subject, **kw)


def most(what, bound, test, subject='ours', **kw):
    return row(what, '<=', bound, test, subject, **kw)


# What the switch as it starts by itself, the kernel being its cache, is to reach; then what its code in
# user space is.
REQUIRED = [
    least('TCP, offloads on, 1 stream: to the bridge', 1.0, 'tcp1', to='bridge'),
    least('... 4 streams', 1.0, 'tcp4', to='bridge'),
    least('TCP, offloads off, 1 stream: to the bridge', 1.2, 'tcp1-off', to='bridge'),
    least('... to user space alone', 0.95, 'tcp1-off', to='userspace'),
    least('TCP, no offloads at hosts and ports: to the bridge', 1.2, 'tcp1-bare', to='bridge'),
    least('64-byte packets: to the bridge', 1.2, 'small', to='bridge'),
    most('round trip, p50: to the bridge', 1.1, 'rtt', to='bridge'),
    most('... p99', 1.2, 'rtt', to='bridge', figure='us p99'),
    most('... after a stream of TCP segments', 1.0, 'rtt-after', to='bridge'),
    least('connections, 16 clients: to the bridge', 1.15, 'conn16', to='bridge'),
    least('... under rules about applications', 1.1, 'conn16-apps', to='bridge', to_test='conn16'),
    least('... under 200 rules about ports', 1.1, 'conn16-ports', to='bridge', to_test='conn16'),
    least('connections, one after the other: to the bridge', 1.0, 'conn1', to='bridge'),
    least('... under rules about applications', 1.0, 'conn1-apps', to='bridge', to_test='conn1'),
    least('TCP, offloads on, 1 stream: to tc flower', None, 'tcp1', to='flower'),
    least('64-byte packets: to tc flower', None, 'small', to='flower'),
    most('round trip, p50: to tc flower', None, 'rtt', to='flower'),
    least('TCP, offloads on, 1 stream: to OVS userspace-tso', 1.15, 'tcp1', to='ovs-tso'),
    least('64-byte packets: to OVS', 2.5, 'small', to='ovs'),
    least('TCP in a queue of 6 Mbit/s: of its rate', 0.98, 'rate6m'),
    most('... at most', 1.02, 'rate6m'),
    least('... of 10 Mbit/s', 0.98, 'rate10m'),
    most('... at most', 1.02, 'rate10m'),
    least('... of 1 Gbit/s', 0.98, 'rate1g'),
    most('... at most', 1.02, 'rate1g'),
    most('round trip beside TCP that fills 10 Mbit/s, p50: to user space alone', 1.1, 'rtt-bulk',
         to='userspace'),
    most('... p99', 1.2, 'rtt-bulk', to='userspace', figure='us p99'),
    most('a processor\'s share, 300,000 packets/s', 0.02, 'established'),
    least('round trips measured: TCP, offloads on: to --latency=off', 0.98, 'tcp1', to='unmeasured'),
    least('... TCP, offloads off', 0.98, 'tcp1-off', to='unmeasured'),
    least('... 64-byte packets', 0.98, 'small', to='unmeasured'),
    most('... round trip, p50', 1.02, 'rtt', to='unmeasured'),
    most('each packet a new entry, CPU time: to user space alone', 1.1, 'cpu-adverse', to='userspace'),
    most('... of the machine', 1.1, 'cpu-adverse', to='userspace', figure='of the machine'),
    least('TCP, offloads on, 1 stream: to the bridge', 0.75, 'tcp1', 'userspace', to='bridge'),
    least('... to OVS userspace-tso', 1.15, 'tcp1', 'userspace', to='ovs-tso'),
    least('TCP, offloads on, 4 streams: to the bridge', 0.45, 'tcp4', 'userspace', to='bridge'),
    least('... to OVS userspace-tso', 1.15, 'tcp4', 'userspace', to='ovs-tso'),
    least('TCP, offloads off, 1 stream: to the bridge', 1.0, 'tcp1-off', 'userspace', to='bridge'),
    least('... to OVS', 4, 'tcp1-off', 'userspace', to='ovs'),
    least('TCP, offloads off, 4 streams: to the bridge', 0.8, 'tcp4-off', 'userspace', to='bridge'),
    least('... to OVS', 4, 'tcp4-off', 'userspace', to='ovs'),
    least('64-byte packets: to the bridge', 1.3, 'small', 'userspace', to='bridge'),
    least('... to OVS', 2.5, 'small', 'userspace', to='ovs'),
    least('... to OVS on AF_XDP ports', 1.0, 'small', 'userspace', to='ovs-xdp'),
    least('10,000 microflows: to 1 microflow', 0.9, 'small10k', 'userspace', to_test='small'),
    least('... with 1,000,000 flows of mixed masks', 0.9, 'flows1m', 'userspace', to_test='small'),
    least('each packet a new microflow: to 1 microflow', 0.5, 'churn', 'userspace', to_test='small'),
    least('... with 1,000,000 flows of mixed masks', 0.5, 'churn1m', 'userspace', to_test='small'),
    most('round trip, p50: to the bridge', 2.3, 'rtt', 'userspace', to='bridge'),
    most('round trip, p99: to the bridge', 2, 'rtt', 'userspace', to='bridge', figure='us p99'),
    most('... p50, with --busy-poll 1000', 1.3, 'rtt', subject='busy', to='bridge'),
    most('... p50, 1,000 ports: to 2', 1.2, 'rtt', subject='crowded', to='userspace'),
    most('CPU time a packet, 1,000 ports: to 2', 1.2, 'cpu', subject='crowded', to='userspace'),
    most('a processor\'s share, no packets', 0.01, 'idle'),
    most('... with 1,000 ports', 0.01, 'idle', subject='crowded'),
    most('... with --busy-poll 1000', 0.01, 'idle', subject='busy'),
    most('a processor\'s share, 1,000 packets/s', 0.1, 'sparse'),
    *(least(f'super-packets, {kind}, {figure}: to the bridge', 0.3, f'super-{kind.lower()}',
            to='bridge', figure=figure) for kind in KINDS for figure in SUPER),
    most('CPU time a packet, 10 unrelated flow-mods/s: to none', None, 'mods-beside10', 'userspace',
         to_test='mods-beside0'),
    most('... 100 a second', None, 'mods-beside100', 'userspace', to_test='mods-beside0'),
    most('... 1,000 a second', 1.15, 'mods-beside1000', 'userspace', to_test='mods-beside0'),
    most('... the control thread included', None, 'mods-beside1000', 'userspace', to_test='mods-beside0',
         figure='with the control thread'),
    most('all new, CPU time, 1,024 masks to rule out: to none', 2.5, 'cpu-masks', 'userspace',
         to_test='cpu-churn'),
    least('... packets/s', 0.4, 'masks-churn', 'userspace', to_test='churn'),
    most('... the switch\'s code alone', 2.5, 'pipeline', figure='ns, 1,024 masks',
         to_figure='ns, all new'),
    most('a packet, 1 flow: to the yardstick', 0.76, 'pipeline', to_figure='ns, yardstick'),
    most('a packet, 10,000 microflows, 3 tables: to the yardstick', 1.24, 'pipeline',
         figure='ns, 3 tables', to_figure='ns, yardstick'),
    least('... packets/s of 2 workers: to 1', 1.9, 'pipeline', figure='M packets/s, 2 workers',
          to_figure='M packets/s'),
    least('TCP, 1 queue of the link\'s rate: to none', 0.99, 'link1', to_test='link0'),
    least('TCP, 1 queue, link without limit: to none', 0.99, 'queues1', to_test='queues0'),
    least('TCP, 1,024 queues, 1 in use: to none', 0.95, 'queues1024', to_test='queues0'),
    least('TCP, 1,024 queues in use: to none', 0.95, 'used1024', to_test='used0'),
    least('flow-mods/s acknowledged, 1,000,000 flows', 1e6, 'mods1m'),
    most('bytes a flow', 250, 'mods1m', figure='bytes/flow'),
    most('MB with 1,000,000 flows', 300, 'mods1m', figure='MB'),
    least('2 workers, 2 ports: to 1', 1.7, 'workers', subject='two', to='one'),
    least('2 workers, 1 port: to 1', 1.7, 'fanout', subject='fanout', to='one'),
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
    """[(row, measured, holds or None without a bound, measured of the build before or None)] of
    what has been measured"""
    out = []
    for r in REQUIRED:
        got = measured(samples, r, r.subject, r.to_subject)
        if got is not None:
            holds = None if r.bound is None else got >= r.bound if r.sense == '>=' else got <= r.bound
            out.append((r, got, holds, measured(samples, r, before(r.subject),
                                                r.to_subject and before(r.to_subject))))
    return out


def measured(samples, r, subject, to):
    if to is None:
        return samples.median(r.test, subject, r.figure)
    return samples.between((r.test, subject, r.figure), (r.to_test, to, r.to_figure))
