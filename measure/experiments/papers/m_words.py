# SPDX-License-Identifier: Apache-2.0
"""What M's source names beside its measurements: HFSC in HTB's place, bands below a class, the ToS."""
import contextlib
import socket
import statistics
import struct
import time

from support.load import Cbr
from support.topo import Switch, Topology, eth, inside, udp4

from harness.experiment import Claim, Judged, Part, Table
from harness.network import queue_bytes
from harness.pauses import Pauses
from harness.plot import COLOURS

MBIT = 1_000_000
SINK, LINK = 3, 4                        # the host, and Mbit/s of the link to it
HFSC, BANDS = 'HFSC beside HTB', 'bands below a class, ToS'
# A class that sends eight packets every 200 ms, beside one that wants all.  Slow: the test kernel is
RATE, BURST, EVERY, SIZE, CURVE_MS = 0.5, 8, 0.2, 1000, 20
LATER = 1.25                             # of the curve's time: one packet before it, and the timer
# One queue of 4 Mbit/s with three bands below it; Mbit/s that each sends, and its DSCP
CLASS_RATE = 4
BAND = {11: (1, 46), 12: (2, 26), 13: (4, 0)}
SETTLE = 1.0


def parts(p):
    yield Part(HFSC, 2 * p['words'] + 6, needs=('htb', 'hfsc'), uses=('words',), form=1, run=hfsc)
    yield Part(BANDS, p['words'] + 4, uses=('words',), form=1, run=bands)


def frame(source, port, size, number=0, tos=0):
    return eth(udp4(struct.pack('!I', number).ljust(size - 42, b'.'), dport=port,
                    src=f'10.0.0.{source}', dst=f'10.0.0.{SINK}', tos=tos), SINK, source)


# --------------------------------------------------------------------------------- delay and rate

def hfsc(ctx, _):
    """-> {way: [ms until the last packet of each burst has come]}"""
    kinds = {'HTB': ('qos-htb', f'rate={LINK}mbit', f'rate={RATE}mbit,ceil={RATE}mbit',
                     f'rate={LINK - RATE}mbit,ceil={LINK}mbit'),
             'HFSC': ('qos-hfsc', f'ul={LINK}mbit,ls={LINK}mbit',
                      f'rt={BURST * SIZE * 8 / CURVE_MS / 1000:.1f}mbit/{CURVE_MS}ms/{RATE}mbit',
                      f'ls={LINK - RATE}mbit,ul={LINK}mbit')}
    found = {}
    for name, (command, total, small, large) in kinds.items():
        ctx.say(name)
        with contextlib.ExitStack() as stack:
            topo = stack.enter_context(Topology(ports=3))
            switch = stack.enter_context(Switch(topo))
            for number, words in (0, total), (10, small), (20, large):
                verb = 'replace' if number == 0 else 'add'
                switch.dpctl(command, f'cmd={verb},port={SINK},class={number},{words}')
            for host, queue in (1, 10), (2, 20):
                switch.dpctl('flow-mod', 'cmd=add,table=0,prio=1', f'in_port={host}',
                             f'apply:queue={queue},output={SINK}')
            stack.enter_context(Cbr(topo, 2, (frame(2, 9, 1250), 1.2 * LINK * MBIT / 8 / 1250),
                                    seconds=ctx.p['words'] + SETTLE + 5))
            time.sleep(SETTLE)
            found[name] = bursts(topo, ctx.p['words'])
    return found


def bursts(topo, seconds):
    """Sends them and waits for each -> ms of each; None where packets were lost"""
    found = []
    with topo.host(1) as source, topo.host(SINK) as sink:
        due = time.monotonic()
        for number in range(int(seconds / EVERY)):
            due += EVERY
            time.sleep(max(0, due - time.monotonic()))
            began = time.monotonic()
            for _ in range(BURST):
                source.send(frame(1, 7, SIZE, number))
            found.append(last_of(sink.sock, number, began + 0.5))
            if found[-1] is not None:
                found[-1] = (found[-1] - began) * 1000
    return found


def last_of(sock, number, deadline):
    """When the last packet of the burst has come, or None"""
    seen = 0
    wanted = struct.pack('!HHI', 7, SIZE - 34, number)         # the port, UDP's length; the number
    while time.monotonic() < deadline:
        sock.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            got = sock.recv(2048)
        except TimeoutError:
            break
        if got[36:40] == wanted[:4] and got[42:46] == wanted[4:]:
            seen += 1
            if seen == BURST:
                return time.monotonic()
    return None


def judge_hfsc(samples):
    got = {name: [ms for ms in every if ms is not None] for name, every in samples[HFSC].items()}
    lost = {name: len(every) - len(got[name]) for name, every in samples[HFSC].items()}
    middle = {name: statistics.median(every) for name, every in got.items()}
    return Judged(f'HFSC {middle["HFSC"]:.1f} ms, HTB {middle["HTB"]:.1f} ms (medians of '
                  f'{len(got["HFSC"])} and {len(got["HTB"])} bursts)',
                  middle['HFSC'] <= LATER * CURVE_MS and middle['HTB'] > 1.5 * middle['HFSC'],
                  f'bursts with lost packets: {lost["HFSC"]} and {lost["HTB"]}' if any(
                      lost.values()) else '')


# ------------------------------------------------------------------------------------------ bands

def bands(ctx, _):
    """-> the queues' bytes over time, and how many frames came with which DSCP"""
    topo = ctx.enter(Topology(ports=SINK))
    switch, pauses = ctx.enter(Switch(topo)), Pauses(ctx)
    switch.dpctl('qos-htb', f'cmd=add,port={SINK},class=10,rate={CLASS_RATE}mbit')
    for prio, (queue, (_, dscp)) in enumerate(BAND.items()):
        switch.dpctl('qos-htb', f'cmd=add,port={SINK},class={queue},parent=10,rate=100kbit,'
                                f'ceil={CLASS_RATE}mbit,prio={prio}')
        # What the host set, or what the port says: ToS 0 becomes the band's own
        switch.dpctl('flow-mod', 'cmd=add,table=0,prio=10', f'in_port=1,eth_type=0x800,ip_proto=17,'
                     f'udp_dst={7000 + queue}', f'apply:set_field=ip_dscp:{dscp},queue={queue},'
                     f'output={SINK}')
    conn = ctx.enter(switch.connect())
    streams = [(frame(1, 7000 + queue, 1250), mbit * MBIT / 8 / 1250)
               for queue, (mbit, _) in BAND.items()]
    seconds = ctx.p['words']
    with Cbr(topo, 1, *streams, seconds=seconds + SETTLE + 5) as sender:
        time.sleep(SETTLE)
        first = queue_bytes(conn, SINK, BAND)
        came = marks(topo, seconds)
        last = queue_bytes(conn, SINK, BAND)
        sender.stop()
    took = last[0] - first[0]
    return {'mbit': {q: (last[1][q] - first[1][q]) * 8 / took / MBIT for q in BAND}, 'came': came,
            'took': took, 'paused': pauses.within(first[0], last[0])}


def marks(topo, seconds):
    """{'UDP port, DSCP': frames} that come to the host"""
    found, end = {}, time.monotonic() + seconds
    with inside(topo.host_ns(SINK)):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x800))
    with sock:
        while (now := time.monotonic()) < end:
            sock.settimeout(end - now)
            try:
                got = sock.recv(2048)
            except TimeoutError:
                break
            key = f'{struct.unpack_from("!H", got, 36)[0]}, {got[15] >> 2}'
            found[key] = found.get(key, 0) + 1
    return found


def judge_bands(samples):
    got, total = samples[BANDS]['mbit'], CLASS_RATE
    wanted = {'11': BAND[11][0], '12': BAND[12][0], '13': total - BAND[11][0] - BAND[12][0]}
    holds = all(abs(got[q] / w - 1) <= 0.05 for q, w in wanted.items())
    return Judged(', '.join(f'{got[q]:.2f} of {w:.2f}' for q, w in wanted.items()) + ' Mbit/s; all '
                  f'together {sum(got.values()):.2f} of {total}', holds, '' if holds else
                  f"the machine stood still for {samples[BANDS]['paused']:.2f} of "
                  f"{samples[BANDS]['took']:.1f} s")


def judge_marks(samples):
    came = samples[BANDS]['came']
    wanted = {f'{7000 + q}, {dscp}' for q, (_, dscp) in BAND.items()}
    wrong = sum(n for key, n in came.items() if key not in wanted)
    return Judged(f'{sum(came.values()) - wrong:,} of {sum(came.values()):,} frames have it',
                  wrong == 0 and wanted <= came.keys())


def claims():
    yield Claim(f'HFSC: a class of {RATE} Mbit/s has a burst of {BURST} packets through in {CURVE_MS} ms '
                'beside a full link, HTB with the same rate takes longer: delay apart from rate',
                'named; figures: not at hand', judge_hfsc)
    yield Claim('bands below a class: the first has all that it sends, the second too, the last what is '
                'left of the class (within 5 %)', 'named; figures: not at hand', judge_bands)
    yield Claim('the ToS is set: every frame of a flow arrives with the DSCP that the switch gives it',
                'named; figures: not at hand', judge_marks)


def tables(samples):
    rows = []
    for name, every in samples[HFSC].items():
        got = sorted(ms for ms in every if ms is not None)
        rows.append((name, len(got), statistics.median(got), got[int(0.95 * (len(got) - 1))], got[-1]))
    yield Table(f'A burst of {BURST} packets of {SIZE} bytes every {EVERY * 1000:.0f} ms in a class of '
                f'{RATE} Mbit/s: ms until the last has come', ('', 'bursts', 'median', '95 of 100', 'longest'),
                rows)


def draw(fig, samples):
    axes = fig.subplots()
    for colour, (name, every) in zip(COLOURS, samples[HFSC].items()):
        got = sorted(ms for ms in every if ms is not None)
        axes.plot(got, [(n + 1) / len(got) for n in range(len(got))], color=colour, label=name)
    axes.axvline(CURVE_MS, color='#888888', ls='--', lw=0.8, label='asked for')
    axes.set(xlabel='ms until the burst is through', ylabel='part of the bursts', ylim=(0, 1))
    axes.legend()


