# SPDX-License-Identifier: Apache-2.0
"""iperf3 between two hosts of a topology.

    flow = Flow(ctx, topo, 1, 3, port=5201, seconds=10, words=('-u', '-b', '8M'))
    ...
    got = flow.result()         what the receiver counted

TCP has the congestion control of congestion.py, whatever the machine's own is.
"""
import json
import os
import subprocess
import threading
import time

from .congestion import congestion
from .context import Failure

LISTEN = '0A'                  # the state in /proc/net/tcp


def listens(pid, port):
    """Does somebody in the process's network namespace?"""
    for name in 'tcp', 'tcp6':
        with open(f'/proc/{pid}/net/{name}') as f:
            for fields in map(str.split, f):
                if fields[3] == LISTEN and fields[1].endswith(f':{port:04X}'):
                    return True
    return False


class Flow:
    """One iperf3 flow from host `source` to host `sink`, that begins now.  words: more of the
    client's options; report: seconds of an interval of the result; pinned: sender and receiver have a
    processor each, always the same."""

    def __init__(self, ctx, topo, source, sink, port, seconds, words=(), v6=False, report=1,
                 pinned=False):
        self.seconds = seconds
        cpus = sorted(os.sched_getaffinity(0))
        to_send, to_receive = (('taskset', '-c', str(cpu)) if pinned else ()
                               for cpu in (cpus[0], cpus[-1]))
        if '-u' not in words:
            words = ('-C', congestion(), *words)
        address = f'fd00::{sink}' if v6 else f'10.0.0.{sink}'
        self.server = ctx.start(topo.host_ns(sink), *to_receive, 'iperf3', '-s', '-1', '-J', '-p',
                                str(port), '-i', str(report))
        deadline = time.monotonic() + 10
        while not listens(self.server.pid, port):
            if self.server.poll() is not None or time.monotonic() > deadline:
                raise Failure(f'iperf3 does not listen on port {port}')
            time.sleep(0.01)
        self.began = time.monotonic()
        self.client = ctx.start(topo.host_ns(source), *to_send, 'iperf3', '-c', address, '-J', '-p',
                                str(port), '-t', str(seconds), *words)
        self.said = {}
        self.readers = [threading.Thread(target=self.read, args=(name,), daemon=True)
                        for name in ('server', 'client')]
        for reader in self.readers:
            reader.start()

    def read(self, name):
        self.said[name] = getattr(self, name).stdout.read()

    def alive(self):
        return self.client.poll() is None

    def stop(self):
        """Ends it before its time -> as `result`"""
        if self.alive():
            self.client.terminate()
        return self.result()

    def result(self, patience=30):
        """Waits for the end -> {bps, retransmits, intervals: [{start, end, bps, ...}]} and of UDP
        {packets, lost_packets, lost_percent}; all but sent_bps and retransmits is what the receiver
        counted, of payload."""
        deadline = time.monotonic() + self.seconds + patience
        for child in self.client, self.server:
            try:
                child.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise Failure('iperf3 did not end') from None
        for reader in self.readers:
            reader.join(5)
        received, sent = (parsed(self.said.get(name)) for name in ('server', 'client'))
        intervals = [interval(i['sum']) for i in received['intervals'] if not i['sum']['omitted']]
        out = {'began': self.began, 'bps': bps_of(intervals), 'intervals': intervals,
               'sent_bps': bps_of([interval(i['sum']) for i in sent['intervals']]),
               'retransmits': sent['end'].get('sum_sent', {}).get('retransmits')}
        if intervals and 'packets' in intervals[0]:
            out.update((key, sum(i[key] for i in intervals)) for key in ('packets', 'lost_packets'))
            out['lost_percent'] = 100 * out['lost_packets'] / max(1, out['packets'])
        return out


def parsed(text):
    """iperf3's JSON; it may say something before it.  That it was stopped is no error."""
    text = text or ''
    try:
        told = json.loads(text[max(0, text.find('{')):] or '{}')
    except ValueError:
        raise Failure(f'iperf3 said: {text[:200]}') from None
    error = told.get('error', '')
    if not told.get('end') or error and 'client has terminated' not in error:
        raise Failure(f"iperf3: {error or 'no result'}")
    return told


def interval(row):
    out = {'start': row['start'], 'end': row['end'], 'bps': row['bits_per_second']}
    for key in 'jitter_ms', 'packets', 'lost_packets':
        if key in row:
            out[key] = row[key]
    return out


def bps_of(intervals):
    """Mean over whole intervals: a short last one counts for as long as it was."""
    took = sum(i['end'] - i['start'] for i in intervals)
    return sum(i['bps'] * (i['end'] - i['start']) for i in intervals) / took if took else 0.0
