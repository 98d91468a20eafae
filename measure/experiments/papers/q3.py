# SPDX-License-Identifier: Apache-2.0
"""QoSFlow's fourth figure: what many queues cost the switch in CPU time and memory."""
import contextlib
import math
import os
import re
import statistics
import subprocess
import tempfile
import time
from collections import namedtuple

from harness.context import Failure
from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table
from harness.network import Switch, Topology, cpu_ns, resident
from harness.plot import OURS
from harness.results import from_proc
from harness.stats import mean, plus_minus
from support.load import Cbr
from support.topo import REPOSITORY, dpctl, eth, udp4

MBIT = 1_000_000
SIZE = 1250                    # bytes of a frame: 500 a second are 5 Mbit/s
PORTS = 7000                   # of UDP: queue q's traffic goes to PORTS + q
SAME = 1.25                    # CPU time that counts as the same
FLAT = 0.1                     # more memory than with one queue
PUBLISHED_MEMORY = 7           # % of the source's machine
MIB = 1 << 20
ROUTER_MB = 32                 # that the TP-Link 1043ND of 400 MHz has
PUBLISHED_MB = ROUTER_MB * PUBLISHED_MEMORY / 100
ALL, KERNEL, SMALL, EMULATED = 'all', 'handled by the kernel', 'as on a router', 'emulated router'
BY_ITSELF = ('--offload=off',)  # the daemon handles every packet
# What docs/how-to/openwrt.md names for small machines
SPARING = ('--ring-memory=1mb', '--cache=1024', '--offload=off')
GUEST = 'tests/cross/guest'    # mipsel BUILD DIRECTORY
GUEST_BUILD, GUEST_PLACE = 'build-small-mipsel-musl', 'build-guest/mipsel'
GUEST_MAKER = '.ci/openwrt --arch mipsel mipsel-musl'
IDLE_RATE = 8000               # bit/s of queues without traffic

Config = namedtuple('Config', 'title queues busy rate')      # rate: Mbit/s of each busy queue
FIGURE = (Config('1 queue at 5 Mbit/s', 1, 1, 5), Config('1 queue at 40 Mbit/s', 1, 1, 40),
          Config('8 queues at 5 Mbit/s', 8, 8, 5))


def configs(p):
    return FIGURE + tuple(Config(f'{n:,} queues, 8 of them at 5 Mbit/s', n, 8, 5)
                          for n in p['queues'])


class Subject:
    """A switch with a configuration's queues on port 2; options: of the daemon"""

    def __init__(self, stack, config, options=()):
        self.config = config
        self.topo = stack.enter_context(Topology(ports=2))
        self.switch = stack.enter_context(Switch(self.topo, *options))
        self.conn = stack.enter_context(self.switch.connect(timeout=60))
        lines = [f'flow-mod cmd=add,table=0,prio=1 eth_type=0x800,ip_proto=17,udp_dst={PORTS + q} '
                 f'apply:queue={q},output=2' for q in range(1, config.busy + 1)]
        lines += [f'qos-htb cmd=add,port=2,class={q},rate='
                  f'{config.rate * MBIT if q <= config.busy else IDLE_RATE}bit'
                  for q in range(1, config.queues + 1)]
        with tempfile.NamedTemporaryFile('w', prefix='ofqos-') as f:
            f.write('\n'.join(lines) + '\n')
            f.flush()
            dpctl('--timeout', '300', '-F', f.name, self.switch.address, timeout=600)

    def windows(self, seconds, width):
        """-> [{cpu_ns, seconds, bytes, resident}], one after the other while its traffic flows"""
        frames = self.config.rate * MBIT / 8 / SIZE
        streams = [(eth(udp4(bytes(SIZE - 42), dport=PORTS + q)), frames)
                   for q in range(1, self.config.busy + 1)]
        pid, found = self.switch.process.pid, []
        with Cbr(self.topo, 1, *streams, seconds=seconds + 10) as sender:
            self.wait_for_traffic()
            before = self.sent(), cpu_ns(pid), time.monotonic()
            for _ in range(max(1, round(seconds / width))):
                time.sleep(width)
                now = self.sent(), cpu_ns(pid), time.monotonic()
                sent, used, took = (b - a for a, b in zip(before, now))
                found.append({'cpu_ns': used, 'seconds': took, 'resident': resident(pid),
                              'bytes': sent})
                before = now
            sender.stop()
        return found

    def sent(self):
        """Bytes: of the port, as asking for the queues' would be work for the switch"""
        return self.conn.port_stats(2)[2]['tx_bytes']

    def wait_for_traffic(self):
        deadline = time.monotonic() + 10
        before = self.sent()
        while self.sent() == before:
            if time.monotonic() > deadline:
                raise Failure(f'{self.config.title}: nothing goes through')
            time.sleep(0.1)


class Q3(Experiment):
    id = 'Q3'
    title = 'CPU time and memory by the number of queues'
    source = 'QoSFlow, figure 4'
    headline = 4
    set_up = ('One switch, two hosts, UDP in frames of 1,250 bytes: one queue at 5 Mbit/s, one at '
              '40, eight at 5; then 64, 1,024 and 16,384 queues on the port, eight of them with '
              'traffic. All configurations stand side by side and take turns. CPU time is that of '
              'all the daemon\'s threads, user and kernel mode, in windows of 10 s; the '
              'daemon handles every packet by itself (--offload=off), what it needs when the kernel does '
              'is measured beside it. Memory is what is resident. In megabytes it is measured as well of a '
              'daemon with what docs/how-to/openwrt.md names for small machines, also on an emulated MIPS router '
              '(Debian\'s kernel for Malta, 64 MB, musl, two ports, two queues, 1,000 flows), where that '
              'has been built.')
    differs = (f'The source tells memory in per cent of its machine: {PUBLISHED_MEMORY} % of the '
               f'{ROUTER_MB} MB that a TP-Link 1043ND of 400 MHz has are {PUBLISHED_MB:.1f} MB. A per '
               'cent of this machine\'s memory says nothing beside that, so megabytes are compared too. '
               'What the daemon has here is mostly receive rings and flow cache, which are sized by the '
               'machine\'s memory. What packets that the kernel handles cost the kernel is in no '
               'process.')
    form = 3
    full = {'seconds': 120, 'window': 10, 'rounds': 2, 'queues': [64, 1024, 16384]}
    quick = {'seconds': 2, 'window': 1, 'rounds': 1, 'queues': [64, 1024]}

    def parts(self, p):
        yield Part(ALL, len(configs(p)) * (p['rounds'] * (p['seconds'] + 0.3) + 0.3)
                   + (max(p['queues']) / 3000) ** 2)     # the kernel: by the square
        yield Part(KERNEL, 10 + len(FIGURE) * (p['seconds'] / 4 + 1), uses=('seconds', 'window'))
        yield Part(SMALL, 8, uses=())
        yield Part(EMULATED, 60 if os.path.exists(os.path.join(REPOSITORY, GUEST_BUILD)) else 1,
                   needs=(), uses=(), form=4)

    def run(self, ctx, part):
        if part.name == SMALL:
            subject = Subject(ctx.enter(contextlib.ExitStack()), FIGURE[-1], SPARING)
            return subject.windows(3, 1)
        if part.name == KERNEL:
            return {config.title: Subject(ctx.enter(contextlib.ExitStack()), config).windows(
                ctx.p['seconds'] / 4, ctx.p['window'] / 2) for config in FIGURE}
        if part.name == EMULATED:
            return emulated(ctx)
        subjects = {}
        for config in configs(ctx.p):
            ctx.say(f'making {config.title}')
            subjects[config.title] = Subject(ctx.enter(contextlib.ExitStack()), config, BY_ITSELF)
        sample = {title: [] for title in subjects}
        for turn in range(ctx.p['rounds']):
            for title, subject in subjects.items():
                ctx.say(f'round {turn + 1}: {title}')
                sample[title] += subject.windows(ctx.p['seconds'], ctx.p['window'])
        return {'configurations': sample,
                'memory': int(from_proc('/proc/meminfo', 'MemTotal').split()[0]) * 1024}

    @staticmethod
    def cpu(samples, config):
        """CPU time of a second, in seconds: the median of the windows"""
        return statistics.median(Q3.used(samples, config))

    @staticmethod
    def used(samples, config):
        return [w['cpu_ns'] / 1e9 / w['seconds']
                for w in samples[ALL]['configurations'][config.title]]

    @staticmethod
    def resident(samples, config):
        return max(w['resident'] for w in samples[ALL]['configurations'][config.title])

    def claims(self, p):
        one5, one40, eight = FIGURE
        yield Claim('CPU time follows the traffic: 40 Mbit/s in one queue take more than 5',
                    'CPU follows traffic', lambda s: self.judge_traffic(s, one5, one40))
        for config in (eight, *configs(p)[3:]):
            yield Claim(f'CPU time does not follow the queues: {config.title} take at most {SAME} '
                        'times as much as the same traffic in one queue', 'CPU follows traffic',
                        lambda s, c=config: self.judge_queues(s, c, one40))
        yield Claim('packets that the kernel handles cost the daemon less than a tenth of the CPU time: '
                    + one40.title, 'not known there', lambda s: self.judge_kernel(s, one40))
        for config in (eight, *configs(p)[3:]):
            yield Claim(f'memory is flat: {config.title} take at most {FLAT:.0%} more than one '
                        'queue',
                        f'flat at {PUBLISHED_MEMORY} % of the memory',
                        lambda s, c=config: self.judge_memory(s, c, one5))
        yield Claim('megabytes of memory: no more than the source\'s', f'{PUBLISHED_MEMORY} % of '
                    f'{ROUTER_MB} MB: {PUBLISHED_MB:.1f} MB', lambda s: self.judge_megabytes(s, one5))
        yield Claim('megabytes of memory: no more than a quarter of such a router, with what is named '
                    'for small machines', f'{PUBLISHED_MB:.1f} MB', self.judge_small)
        yield Claim('megabytes of memory on an emulated MIPS router: no more than a quarter of the '
                    'source\'s', f'{PUBLISHED_MB:.1f} MB', self.judge_emulated)

    def judge_traffic(self, samples, one5, one40):
        few, many = self.cpu(samples, one5), self.cpu(samples, one40)
        return Judged(f'{few:.2%} and {many:.2%} of a processor', many > few)

    def judge_queues(self, samples, config, one):
        ratio = self.cpu(samples, config) / self.cpu(samples, one)
        windows = samples[ALL]['configurations']
        spread = [w['cpu_ns'] / w['seconds'] for w in windows[one.title]]
        return Judged(f'{ratio:.2f} times', ratio <= SAME, '' if ratio <= SAME else
                      f'the windows with one queue differ by {max(spread) / min(spread):.2f} times '
                      'among themselves')

    def judge_memory(self, samples, config, one):
        total = samples[ALL]['memory']
        mine, base = self.resident(samples, config), self.resident(samples, one)
        more = f', {(mine - base) / config.queues:.0f} bytes a queue' if config.queues > 8 else ''
        return Judged(f'{mine / 1e6:.1f} MB ({mine / total:.2%}), one queue {base / 1e6:.1f} MB '
                      f'({base / total:.2%}){more}', mine <= (1 + FLAT) * base)

    def judge_kernel(self, samples, config):
        there = statistics.median(w['cpu_ns'] / 1e9 / w['seconds']
                                  for w in samples[KERNEL][config.title])
        own = self.cpu(samples, config)
        return Judged(f'{there:.3%} of a processor instead of {own:.2%}', there < own / 10)

    def judge_megabytes(self, samples, one):
        got = self.resident(samples, one) / MIB
        return Judged(f'{got:.1f} MB', got <= PUBLISHED_MB, '' if got <= PUBLISHED_MB else
                      'receive rings and flow cache have room by the memory there is, '
                      f'{samples[ALL]["memory"] / MIB:,.0f} MB')

    @staticmethod
    def judge_small(samples):
        got = max(w['resident'] for w in samples[SMALL]) / MIB
        return Judged(f'{got:.1f} MB with {" ".join(SPARING)}', got <= ROUTER_MB / 4,
                      'of this machine\'s processor and C library, eight queues with traffic')

    @staticmethod
    def judge_emulated(samples):
        found = samples[EMULATED]
        if 'mb' not in found:
            return Judged('-', None, found['unavailable'])
        return Judged(f"{found['mb']:.1f} MB", found['mb'] <= ROUTER_MB / 4)

    def tables(self, samples, p):
        rows = []
        for config in configs(p):
            windows = samples[ALL]['configurations'][config.title]
            sent = statistics.median(w['bytes'] * 8 / w['seconds'] for w in windows) / MBIT
            cpu = [w['cpu_ns'] / 1e7 / w['seconds'] for w in windows]
            rows.append((config.title, sent, plus_minus(cpu), f'{statistics.median(cpu):.2f}',
                         f'{min(cpu):.2f} to {max(cpu):.2f}',
                         f'{self.resident(samples, config) / 1e6:.1f}'))
        yield Table('Of the daemon', ('', 'Mbit/s on the wire', 'CPU %, mean and 95 %', 'median',
                                      'least to most',
                                      'memory, MB'), rows)

    def figures(self, samples, p):
        def draw(fig):
            every = configs(p)
            labels = [c.title.replace(' at ', '\nat ').replace(', 8 of', ',\n8 of') for c in every]
            left, right = fig.subplots(1, 2)
            cpu = [mean(used * 100 for used in self.used(samples, c)) for c in every]
            left.bar(range(len(every)), [m.mean for m in cpu], color=OURS,
                     yerr=[m.half if math.isfinite(m.half) else 0 for m in cpu])
            left.set_ylabel('% of a processor')
            left.set_title('CPU time')
            total = samples[ALL]['memory']
            right.bar(range(len(every)), [self.resident(samples, c) / total * 100 for c in every],
                      color=OURS, label='ours')
            right.axhline(PUBLISHED_MEMORY, color='#888888', ls='--',
                          label=f'published: {PUBLISHED_MEMORY} % of its machine\'s')
            right.set_ylabel(f'% of {total / 1e9:.1f} GB')
            right.set_title('Memory')
            right.legend(loc='center right')
            for axes in left, right:
                axes.set_xticks(range(len(every)), labels, rotation=60, ha='right', fontsize=7)
                axes.grid(axis='x', visible=False)
        yield Figure('queues', 'As the source\'s figure 4: CPU time and memory of the switch; CPU '
                     'time with 95 % intervals',
                     (9, 4.2), draw)


def emulated(ctx):
    """-> {'mb': resident memory}, or {'unavailable': why}"""
    build, place = (os.path.join(REPOSITORY, name) for name in (GUEST_BUILD, GUEST_PLACE))
    if not os.path.exists(os.path.join(build, 'datapath/ofdatapath')):
        return {'unavailable': f'not built; {GUEST_MAKER} builds it and measures the same: 3.8 MB of 64 '
                               'when docs/how-to/openwrt.md was written'}
    ctx.say('starts')
    done = subprocess.run([os.path.join(REPOSITORY, GUEST), 'mipsel', build, place], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=900, check=False)
    found = re.search(r'ofdatapath has ([\d.]+) MB resident', done.stdout)
    return {'mb': float(found[1])} if found else {'unavailable': done.stdout[-300:].strip()}


EXPERIMENT = Q3()
