# SPDX-License-Identifier: Apache-2.0
"""What is measured: a row a test.  A test takes a subject and the seconds of a sample, and returns
its figures, the one it is judged by first."""
import flowload
from net import Failure, cpu_seconds, memory

CPU_RATE = 100_000      # packets/s


class Test:
    def __init__(self, what, units, measure, takes=lambda s: True, once=False, lower=False):
        self.what, self.units, self.measure = what, units, measure
        self.takes, self.once, self.lower = takes, once, lower


def openflow(subject):
    return subject.openflow


def has_queues(subject):
    return subject.title in ('Linux bridge', 'ofdatapath')


def has_process(subject):
    return subject.title != 'Linux bridge'


def tcp(streams, offloads):
    def measure(subject, seconds):
        subject.net.offloads(offloads)
        try:
            before = cpu_seconds(subject.pids())
            rate = subject.net.tcp(seconds, streams)
            used = cpu_seconds(subject.pids()) - before
        finally:
            subject.net.offloads(True)
        gigabytes = rate * seconds / 8
        figures = {'Gbit/s': rate}
        if subject.pids() and gigabytes:
            figures['CPU s/GB'] = used / gigabytes
        return figures
    return measure


def small(flows, load=None):
    """With the tables that `load` gives, if any, where the subject takes flows"""
    def measure(subject, seconds):
        if not load:
            return {'packets/s': subject.net.small_packets(seconds, flows)[0]}
        messages = load()
        took = subject.only(messages)
        try:
            rate, _ = subject.net.small_packets(seconds, flows)
        finally:
            subject.only(flowload.wires())
        return {'packets/s': rate, 'flow-mods/s': len(messages) / took}
    return measure


def cpu(flows, load=None):
    """What a packet costs the switch when it isn't busy: little disturbed by what else runs"""
    def measure(subject, seconds):
        if load:
            subject.only(load())
        try:
            _, used = subject.net.small_packets(seconds, flows, CPU_RATE, subject.pids())
        finally:
            if load:
                subject.only(flowload.wires())
        return {'us/packet': used * 1e6}
    return measure


def flow_mods(n):
    """By a switch just started, whose memory is what it needs and not what it once did"""
    def measure(subject, seconds):
        messages = flowload.simple(n)
        subject.stop()
        subject.start()
        before = memory(subject.pids())
        took = subject.load(messages)
        grown = memory(subject.pids()) - before
        return {'flow-mods/s': n / took, 'bytes/flow': grown / n}
    return measure


def round_trip(gap_us):
    def measure(subject, seconds):
        subject.net.offloads(False)    # some switches lose packets without a checksum
        try:
            p50, p99 = subject.net.round_trips(seconds, gap_us)
        finally:
            subject.net.offloads(True)
        return {'us p50': p50, 'us p99': p99}
    return measure


def queues(n):
    def measure(subject, seconds):
        subject.queues(n)
        try:
            rate = subject.net.tcp(seconds)
        finally:
            if n:
                subject.queues(0)
        return {'Gbit/s': rate}
    return measure


def mixed(n):
    return lambda: flowload.mixed(n)


TESTS = {
    'tcp1': Test('TCP, 1 stream, offloads on', 'Gbit/s', tcp(1, True)),
    'tcp4': Test('TCP, 4 streams, offloads on', 'Gbit/s', tcp(4, True)),
    'tcp1-off': Test('TCP, 1 stream, offloads off', 'Gbit/s', tcp(1, False)),
    'tcp4-off': Test('TCP, 4 streams, offloads off', 'Gbit/s', tcp(4, False)),
    'small': Test('64-byte packets, 1 microflow', 'packets/s', small(1)),
    'small10k': Test('64-byte packets, 10,000 microflows', 'packets/s', small(10000)),
    'churn': Test('64-byte packets, each a new microflow', 'packets/s', small(0)),
    'flows1k': Test('10,000 microflows, 1,000 flows of mixed masks', 'packets/s',
                    small(10000, mixed(1000)), takes=openflow),
    'flows100k': Test('10,000 microflows, 100,000 flows of mixed masks', 'packets/s',
                      small(10000, mixed(100000)), takes=openflow),
    'churn1k': Test('each packet a new microflow, 1,000 flows of mixed masks', 'packets/s',
                    small(0, mixed(1000)), takes=openflow),
    'churn100k': Test('each packet a new microflow, 100,000 flows', 'packets/s',
                      small(0, mixed(100000)), takes=openflow),
    'cpu': Test('CPU time at 100,000 packets/s, 1 microflow', 'us/packet', cpu(1),
                takes=has_process, lower=True),
    'cpu10k': Test('... 10,000 microflows, 100,000 flows', 'us/packet',
                   cpu(10000, mixed(100000)), takes=openflow, lower=True),
    'rtt': Test('round trip, back to back', 'us p50', round_trip(0), lower=True),
    'rtt-idle': Test('round trip, 1 ms between', 'us p50', round_trip(1000), lower=True),
    'queues0': Test('TCP without queues', 'Gbit/s', queues(0), takes=has_queues),
    'queues1': Test('TCP, HTB of 1 queue', 'Gbit/s', queues(1), takes=has_queues),
    'queues8': Test('TCP, HTB of 8 queues', 'Gbit/s', queues(8), takes=has_queues),
    'queues1024': Test('TCP, HTB of 1,024 queues', 'Gbit/s', queues(1024), takes=has_queues),
    'mods100k': Test('100,000 flows added', 'flow-mods/s', flow_mods(100000), takes=openflow),
    'mods1m': Test('1,000,000 flows added', 'flow-mods/s', flow_mods(1000000), takes=openflow,
                   once=True),
}
NOT_QUICK = ('tcp4', 'tcp4-off', 'churn1k', 'queues8', 'mods1m')

__all__ = ['Failure', 'NOT_QUICK', 'TESTS']
