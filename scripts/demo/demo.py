# SPDX-License-Identifier: Apache-2.0
"""The measuring part of scripts/demo/run (Python standard library only); scripts/demo/run --help explains it."""
import argparse
import contextlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import demo_plot

HERE = os.path.realpath(os.path.join(os.path.dirname(__file__), '../..'))
BUILD = os.path.join(HERE, 'build-demo')     # the user's own is not root's
DPCTL = os.path.join(BUILD, 'utils/dpctl/dpctl')
MBIT = 1_000_000
TOLERANCE = 0.05
SETTLE = 3.0            # seconds at the start that do not count: TCP grows, the queue fills
PORT = 3                # the shared port
QUEUES = {              # queue: name, configured bit/s, how the traffic is made
    10: ('UDP', 6 * MBIT, ['-u', '-b', '20M']),
    20: ('TCP', 10 * MBIT, []),
}
BOLD, DIM, OFF = ('\033[1m', '\033[2m', '\033[0m') if sys.stdout.isatty() else ('', '', '')


class Failure(Exception):
    """Ends the demo with a message."""


def run(*command, **kw):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **kw)
    if done.returncode:
        raise Failure(f"{' '.join(command)}\n{done.stdout.strip()}")
    return done.stdout


def heading(text):
    print(f'\n{BOLD}{text}{OFF}', flush=True)


def build():
    heading('1. Build')
    if not os.path.exists(os.path.join(BUILD, 'build.ninja')):
        print('   meson setup build-demo --buildtype=release -Dtests=disabled', flush=True)
        run('meson', 'setup', BUILD, HERE, '--buildtype=release', '-Dtests=disabled')
    print('   ninja -C build-demo', flush=True)
    try:
        run('ninja', '--quiet', '-C', BUILD)
    except Failure as failure:
        raise Failure('\n'.join(line for line in str(failure).splitlines()
                                if not line.startswith('['))) from None


def hand_over():
    """What root has made in somebody's clone is that person's, who may want to remove it."""
    owner = os.stat(HERE)
    for directory, _, files in os.walk(BUILD):
        for name in ('.', *files):
            os.chown(os.path.join(directory, name), owner.st_uid, owner.st_gid,
                     follow_symlinks=False)


class Network:
    """Hosts 1 to 3 and the switch between them, each a namespace of its own."""

    def __init__(self):
        self.prefix = f'ofqos-demo{os.getpid()}'
        self.switch = self.prefix + '-s'
        self.directory = tempfile.mkdtemp(prefix='ofqos-demo-')
        self.address = f'unix:{self.directory}/s1'
        self.processes = []
        self.namespaces = []
        self.daemon = None

    def host(self, n):
        return f'{self.prefix}-h{n}'

    def make(self):
        heading('2. A switch and three hosts')
        for name in [self.switch] + [self.host(n) for n in (1, 2, 3)]:
            run('ip', 'netns', 'add', name)
            self.namespaces.append(name)
            run('ip', '-n', name, 'link', 'set', 'lo', 'up')
        for n in (1, 2, 3):
            run('ip', '-n', self.host(n), 'link', 'add', 'eth0', 'address',
                f'02:00:00:00:00:0{n}', 'type', 'veth', 'peer', 'name', f's1-eth{n}', 'netns',
                self.switch)
            run('ip', '-n', self.host(n), 'address', 'add', f'10.0.0.{n}/24', 'dev', 'eth0')
            run('ip', '-n', self.host(n), 'link', 'set', 'eth0', 'up')
            run('ip', '-n', self.switch, 'link', 'set', f's1-eth{n}', 'up')
        print(f'''
     h1 10.0.0.1 --- port 1 +----+
                            | s1 | port 3 --- h3 10.0.0.3
     h2 10.0.0.2 --- port 2 +----+
''')
        command = ['ofdatapath', '-i', 's1-eth1,s1-eth2,s1-eth3', '-d', '0000000000000001',
                   f'p{self.address}']
        print('   ' + ' '.join(command), flush=True)
        command[0] = os.path.join(BUILD, 'datapath/ofdatapath')
        self.log = open(os.path.join(self.directory, 'log'), 'w+')
        self.daemon = subprocess.Popen(['ip', 'netns', 'exec', self.switch] + command,
                                       stdin=subprocess.DEVNULL, stdout=self.log,
                                       stderr=self.log, start_new_session=True)
        self.processes.append(self.daemon)
        for _ in range(100):
            if self.daemon.poll() is not None:
                break
            with contextlib.suppress(Failure):
                run(DPCTL, self.address, 'features')
                return
            time.sleep(0.1)
        with open(self.log.name) as f:
            raise Failure('the switch did not start:\n' + f.read())

    def start(self, n, *command):
        """A process in host n"""
        process = subprocess.Popen(['ip', 'netns', 'exec', self.host(n), *command],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.processes.append(process)
        return process

    def daemon_alive(self):
        return self.daemon is not None and self.daemon.poll() is None

    def remove(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        for name in reversed(self.namespaces):
            subprocess.run(['ip', 'netns', 'del', name], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.directory, ignore_errors=True)


def configure(network):
    heading('3. Queues and flows, through OpenFlow')

    def dpctl(*words):
        print(f'   dpctl {network.address} {BOLD}' + ' '.join(words) + OFF, flush=True)
        run(DPCTL, network.address, *words)

    for queue, (name, rate, _) in QUEUES.items():
        dpctl('qos-htb', f'cmd=add,port={PORT},class={queue},rate={rate // MBIT}mbit')
    dpctl('flow-mod', 'cmd=add,table=0,prio=10', 'in_port=1,eth_type=0x800,ip_proto=17',
          f'apply:queue=10,output={PORT}')
    dpctl('flow-mod', 'cmd=add,table=0,prio=10', 'in_port=2,eth_type=0x800,ip_proto=6',
          f'apply:queue=20,output={PORT}')
    for n in (1, 2, 3):
        dpctl('flow-mod', 'cmd=add,table=0,prio=5', f'eth_dst=02:00:00:00:00:0{n}',
              f'apply:output={n}')
    dpctl('flow-mod', 'cmd=add,table=0,prio=1', 'eth_type=0x806', 'apply:output=flood')


def queue_rows(value):
    """Every object of the JSON output that counts a queue"""
    if isinstance(value, list):
        for item in value:
            yield from queue_rows(item)
    elif isinstance(value, dict):
        if {'port_no', 'queue_id', 'tx_bytes'} <= value.keys():
            yield value
        for item in value.values():
            yield from queue_rows(item)


def sample(network, started):
    """The queues' byte counters now, as the switch reports them"""
    before = time.monotonic()
    told = json.loads(run(DPCTL, '--json', network.address, 'stats-queue'))
    now = (before + time.monotonic()) / 2 - started
    counted = {int(row['queue_id']): int(row['tx_bytes']) for row in queue_rows(told)
               if int(row['port_no']) == PORT}
    missing = QUEUES.keys() - counted.keys()
    if missing:
        raise Failure(f'the switch does not report queue {missing} of port {PORT}: {told}')
    return {'t': round(now, 4), 'bytes': {q: counted[q] for q in QUEUES}}


def rate(first, last, queue):
    return (last['bytes'][queue] - first['bytes'][queue]) * 8 / (last['t'] - first['t'])


def measure(network, seconds):
    heading(f'4. {seconds} seconds of traffic through port {PORT}: UDP offered at 20 Mbit/s, TCP '
            'as much as it gets')
    clients, servers = {}, {}
    for queue in QUEUES:
        servers[queue] = network.start(3, 'iperf3', '-s', '-1', '-J', '-p', str(5200 + queue))
    time.sleep(0.5)
    for host, (queue, (_, _, how)) in enumerate(QUEUES.items(), 1):
        clients[queue] = network.start(host, 'iperf3', '-c', '10.0.0.3', '-p', str(5200 + queue),
                                       '-t', str(seconds), '-J', *how)
    outputs = {}
    readers = []
    for key, process in [(('c', q), p) for q, p in clients.items()] + \
            [(('s', q), p) for q, p in servers.items()]:
        reader = threading.Thread(
            target=lambda k=key, p=process: outputs.update({k: p.communicate()[0]}), daemon=True)
        reader.start()
        readers.append(reader)
    started = time.monotonic()
    samples = [sample(network, started)]
    while time.monotonic() - started < seconds:
        time.sleep(0.5)
        if any(p.poll() is not None for p in clients.values()):
            break
        samples.append(sample(network, started))
        progress(samples, seconds)
    print()
    for reader in readers:
        reader.join(15)
    return samples, {q: payload(outputs.get(('s', q), '')) for q in QUEUES}


def progress(samples, seconds):
    back = max(0, len(samples) - 3)
    done = min(1.0, samples[-1]['t'] / seconds)
    bar = '#' * round(done * 24)
    rates = '   '.join(f'{name} {rate(samples[back], samples[-1], q) / MBIT:5.2f} Mbit/s'
                       for q, (name, _, _) in QUEUES.items())
    end = '\r' if sys.stdout.isatty() else '\n'
    if sys.stdout.isatty() or len(samples) % 10 == 0:
        print(f"   [{bar:<24}] {samples[-1]['t']:4.0f} s   {rates} ", end=end, flush=True)


def payload(text):
    """The receiver's bit/s as iperf3 counted them, without headers"""
    try:
        end = json.loads(text)['end']
    except (ValueError, KeyError):
        return None
    received = end.get('sum_received') or end.get('sum') or {}
    value = received.get('bits_per_second')
    if value and end.get('sum', {}).get('lost_percent') and received is end.get('sum'):
        value *= 1 - end['sum']['lost_percent'] / 100
    return value


def conclude(samples, payloads, out, seconds):
    window = [s for s in samples if s['t'] >= SETTLE]
    if len(window) < 4:
        raise Failure('the traffic ended too early to measure anything')
    first, last = window[0], window[-1]
    heading(f"5. Result, {first['t']:.0f} s to {last['t']:.0f} s")
    print('   queue        configured   on the wire   deviation   payload (iperf3)')
    results, good = {}, True
    for queue, (name, configured, _) in QUEUES.items():
        measured = rate(first, last, queue)
        deviation = measured / configured - 1
        within = abs(deviation) <= TOLERANCE
        good = good and within
        told = payloads[queue]
        shown = f'{told / MBIT:6.2f} Mbit/s' if told else 'unknown'
        print(f'   {queue} ({name})  {configured / MBIT:7.2f} Mbit/s {measured / MBIT:6.2f} Mbit/s'
              f'  {deviation:+8.2%}    {shown}' + ('' if within else '   MISSED'))
        results[name] = {'queue': queue, 'configured_bps': configured, 'measured_bps': measured,
                         'deviation': deviation, 'payload_bps': told, 'within': within}
    os.makedirs(out, exist_ok=True)
    series = {name: [((a['t'] + b['t']) / 2, rate(a, b, q) / MBIT)
                     for a, b in zip(samples, samples[2:])]
              for q, (name, _, _) in QUEUES.items()}
    svg = os.path.join(out, 'demo.svg')
    demo_plot.write(svg, f'Two queues on one port, {platform.node()}', series,
                    {name: configured / MBIT for name, configured, _ in QUEUES.values()})
    with open(os.path.join(out, 'demo.json'), 'w') as f:
        json.dump({'seconds': seconds, 'tolerance': TOLERANCE, 'settle_s': SETTLE,
                   'kernel': platform.release(), 'results': results, 'samples': samples}, f,
                  indent=1)
    print(f'\n   Plot: {svg}\n   Samples: {os.path.join(out, "demo.json")}')
    if not good:
        raise Failure(f'a rate is off by more than {TOLERANCE:.0%}')
    print(f'\n   {BOLD}Both rates hold within {TOLERANCE:.0%}.{OFF}')


def keep(network):
    heading('The network is still there')
    print(f'''   Talk to the switch:
     {DPCTL} {network.address} stats-queue
     {DPCTL} {network.address} qos-show
   Run something in a host:
     ip netns exec {network.host(1)} ping 10.0.0.3
   Look at the kernel's queues:
     tc -n {network.switch} -s class show dev s1-eth{PORT}
   Remove it all:
     kill {network.daemon.pid}; for n in {' '.join(network.namespaces)}; do ip netns del $n; done
     rm -r {network.directory}''')


def arguments():
    parser = argparse.ArgumentParser(prog='demo')
    parser.add_argument('--seconds', type=int, default=25)
    parser.add_argument('--out', default=os.path.join(BUILD, 'demo'))
    parser.add_argument('--keep', action='store_true')
    parser.add_argument('--no-install', action='store_true')
    options = parser.parse_args()
    if options.seconds < 8:
        parser.error('--seconds must be at least 8')
    return options


def main():
    options = arguments()

    def interrupted(*_):
        raise Failure('interrupted')
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, interrupted)
    network, status = None, 1
    try:
        build()
        network = Network()
        network.make()
        configure(network)
        samples, payloads = measure(network, options.seconds)
        conclude(samples, payloads, options.out, options.seconds)
        status = 0
    except Failure as failure:
        print(f'\ndemo: {failure}', file=sys.stderr)
    finally:
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(signum, signal.SIG_IGN)
        if network is not None:
            if options.keep and network.daemon_alive():
                keep(network)
            else:
                network.remove()
                print('   Removed the hosts, the switch and its queues.')
        hand_over()
    return status


if __name__ == '__main__':
    sys.exit(main())
