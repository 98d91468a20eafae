# SPDX-License-Identifier: Apache-2.0
"""The switches that are compared.  Each has hosts of its own and stays from beginning to end,
except one that never sleeps (AF_XDP): `awake` starts and ends that around each measurement."""
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time

import flowload
from net import Failure, Network, SINK_MAC, end, run

OVS_SCHEMA = '/usr/share/openvswitch/vswitch.ovsschema'


class Subject:
    title = ''
    openflow = False       # takes flows
    qos = False            # has queues
    always_busy = False    # eats a core even when nothing is to do

    def __init__(self, build, programs=None):
        self.build = build
        self.programs = programs or build      # the build directory of the switch itself
        self.net = Network(f'{build}/measure/bench')
        self.processes = []

    def __enter__(self):
        try:
            self.net.make()
            if not self.always_busy:
                self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stop()
        self.net.remove()

    @contextlib.contextmanager
    def awake(self):
        if self.always_busy:
            self.start()
        try:
            yield
        finally:
            if self.always_busy:
                self.stop()

    def pids(self):
        return [p.pid for p in self.processes]

    def start(self):
        self.launch()
        self.settle()

    def launch(self):
        """Until it can be expected to forward"""
        raise NotImplementedError

    def settle(self):
        """Until nothing is left of the start"""

    def stop(self):
        for p in reversed(self.processes):
            end(p)
        self.processes = []

    def queues(self, n, rate=0):
        """n HTB classes on s2 (of a rate in bit/s; 0: no limit), all traffic to h2 through the
        first one; 0: as before"""
        raise Failure('has no queues')


class Bridge(Subject):
    title = 'Linux bridge'
    qos = True

    def stop(self):
        subprocess.run(self.net.inside('sw', 'ip', 'link', 'del', 'br0'),
                       stderr=subprocess.DEVNULL, check=False)

    def launch(self):
        run(*self.net.inside('sw', 'ip', 'link', 'add', 'name', 'br0', 'type', 'bridge'))
        run(*self.net.inside('sw', 'ip', 'link', 'set', 'br0', 'up'))
        for i in '12':
            run(*self.net.inside('sw', 'ip', 'link', 'set', 's' + i, 'master', 'br0'))
        run(*self.net.inside('sw', 'bridge', 'fdb', 'add', SINK_MAC, 'dev', 's2', 'master',
                             'static'))

    def queues(self, n, rate=0):
        tc = self.net.inside('sw', 'tc')
        subprocess.run((*tc, 'qdisc', 'del', 'dev', 's2', 'root'), stderr=subprocess.DEVNULL,
                       check=False)
        if not n:
            return
        lines = ['qdisc add dev s2 root handle 1: htb default 1']
        lines += [f'class add dev s2 parent 1: classid 1:{q:x} htb '
                  f'rate {rate or queue_rate(q)}bit ceil {rate or 40_000_000_000}bit '
                  'quantum 60000' for q in range(1, n + 1)]
        subprocess.run((*tc, '-batch', '-'), input='\n'.join(lines), text=True, check=True,
                       stdout=subprocess.DEVNULL)


def queue_rate(q):
    return 30_000_000_000 if q == 1 else 1_000_000


class Flower(Bridge):
    """tc's flower classifier, which sends what comes in by one interface out by the other: what can be
    had by hand, without a switch."""
    title = 'tc flower'

    def stop(self):
        for i in '12':
            subprocess.run(self.net.inside('sw', 'tc', 'qdisc', 'del', 'dev', 's' + i, 'clsact'),
                           stderr=subprocess.DEVNULL, check=False)

    def launch(self):
        for i in '12':
            run(*self.net.inside('sw', 'tc', 'qdisc', 'add', 'dev', 's' + i, 'clsact'))
        self.filters(0)

    def filters(self, queue):
        """All into a class of s2"""
        tc = self.net.inside('sw', 'tc')
        for i, other in ('1', '2'), ('2', '1'):
            subprocess.run((*tc, 'filter', 'del', 'dev', 's' + i, 'ingress'),
                           stderr=subprocess.DEVNULL, check=False)
            edit = ('action', 'skbedit', 'priority', f'1:{queue:x}') if queue and i == '1' else ()
            run(*tc, 'filter', 'add', 'dev', 's' + i, 'ingress', 'prio', '1', 'flower', *edit,
                'action', 'mirred', 'egress', 'redirect', 'dev', 's' + other)

    def queues(self, n, rate=0):
        super().queues(n, rate)
        self.filters(1 if n else 0)


class Flowtable(Bridge):
    """A router whose established connections nftables forwards from a table of its own.  Each port
    has the MAC address of the host beyond, so that hosts take the router for a wire."""
    title = 'nft flowtable'

    RULES = '''table ip bench {
        flowtable known { hook ingress priority 0; devices = { s1, s2 }; }
        chain forward { type filter hook forward priority 0; ip protocol { tcp, udp } flow add @known; }
    }'''

    def stop(self):
        subprocess.run(self.net.inside('sw', 'nft', 'delete', 'table', 'ip', 'bench'),
                       stderr=subprocess.DEVNULL, check=False)

    def launch(self):
        run(*self.net.inside('sw', 'sysctl', '-qw', 'net.ipv4.ip_forward=1'))
        for i, other in ('1', '2'), ('2', '1'):
            ip = self.net.inside('sw', 'ip')
            run(*ip, 'link', 'set', 's' + i, 'address', f'02:00:00:00:00:0{other}')
            run(*ip, 'route', 'replace', f'10.0.0.{i}/32', 'dev', 's' + i)
            run(*ip, 'neigh', 'replace', f'10.0.0.{i}', 'lladdr', f'02:00:00:00:00:0{i}', 'nud',
                'permanent', 'dev', 's' + i)
        run(*self.net.inside('sw', 'nft', self.RULES))


class Relay(Subject):
    title = 'bare I/O'
    options = ()

    def launch(self):
        self.processes.append(self.net.start('sw', f'{self.build}/measure/bench/relay', *self.options,
                                             's1', 's2'))

    def settle(self):
        time.sleep(0.2)


class Ofqos(Subject):
    title = 'ofdatapath'
    openflow = True
    qos = True
    options = ()       # of all of them
    more = ()          # of this one
    offload = True     # the kernel may be its cache
    n_queues = 0

    def interfaces(self):
        """Two, and what else is to be attached"""
        return ('s1', 's2')

    def launch(self):
        self.directory = tempfile.mkdtemp(prefix='ofqos-bench-')
        self.address = f'unix:{self.directory}/s'
        with open(f'{self.directory}/log', 'wb') as log:
            self.processes.append(self.net.start(
                'sw', f'{self.programs}/datapath/ofdatapath', '-i', ','.join(self.interfaces()), '-d',
                '000000000001', *self.more, *self.without_offload(), *Ofqos.options,
                'p' + self.address, stderr=log))
        self.wait_for(f'{self.directory}/s')
        self.load(flowload.wires())

    def without_offload(self):
        """A build that doesn't know the option has nothing to turn off"""
        if self.offload:
            return ()
        done = subprocess.run((f'{self.programs}/datapath/ofdatapath', '--help'), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return ('--offload=off',) if '--offload' in done.stdout else ()

    def stop(self):
        super().stop()
        shutil.rmtree(getattr(self, 'directory', '/nonexistent'), ignore_errors=True)

    def wait_for(self, path, seconds=180):
        """Until a process listens there; an emulated processor takes its time to check the kernel's programs"""
        deadline = time.monotonic() + seconds
        while not listens(path):
            for p in self.processes:
                if p.poll() is not None:
                    raise Failure(f'ended with status {p.returncode}: {self.said()}')
            if time.monotonic() > deadline:
                raise Failure(f'{path} does not come')
            time.sleep(0.002)

    def said(self):
        with contextlib.suppress(OSError), open(f'{self.directory}/log', errors='replace') as log:
            return log.readline().strip()[:200]
        return ''

    @contextlib.contextmanager
    def connected(self):
        loader = flowload.Loader(self.address)
        try:
            yield loader
        finally:
            loader.close()

    def load(self, messages):
        with self.connected() as loader:
            return loader.load(messages)

    def only(self, messages):
        self.load([flowload.delete_all()])
        return self.load(messages)

    def queues(self, n, rate=0):
        lines = [f'qos-htb cmd=add,port=2,class={q},rate={rate or queue_rate(q)}bit,'
                 f'ceil={rate or 40_000_000_000}bit' for q in range(1, n + 1)]
        lines.append('flow-mod cmd=add,table=0,prio=1 in_port=1 apply:' +
                     ('queue=1,' if n else '') + 'output=2')
        if not n:
            lines += [f'qos-htb cmd=del,port=2,class={q}' for q in range(self.n_queues, 0, -1)]
        self.n_queues = n
        self.dpctl(lines)

    @contextlib.contextmanager
    def queue_in(self, rate):
        """What enters by s1 passes an HTB class of a rate"""
        self.dpctl([f'qos-htb cmd=add,port=1,class=1,rate={rate}bit,direction=in',
                    'flow-mod cmd=add,table=0,prio=1 in_port=1 apply:queue=1,output=2'])
        try:
            yield
        finally:
            self.only(flowload.wires())
            self.dpctl(['qos-clear port=1,direction=in'])

    def dpctl(self, lines):
        done = subprocess.run((f'{self.programs}/utils/dpctl/dpctl', '-F', '-', self.address),
                              input='\n'.join(lines) + '\n', text=True, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, check=False)
        if done.returncode:
            raise Failure(done.stderr.strip()[:300])

    @contextlib.contextmanager
    def bulk_and_other(self, rate):
        """A link of a rate on s2: TCP in a queue of most of it, UDP in one of the rest"""
        self.dpctl([f'qos-htb cmd=add,port=2,class=0,rate={rate}bit,ceil={rate}bit',
                    f'qos-htb cmd=add,port=2,class=1,rate={rate * 8 // 10}bit,ceil={rate}bit,prio=1',
                    f'qos-htb cmd=add,port=2,class=2,rate={rate * 2 // 10}bit,ceil={rate}bit,prio=0',
                    'flow-mod cmd=add,table=0,prio=2 in_port=1,eth_type=0x800,ip_proto=6 '
                    'apply:queue=1,output=2',
                    'flow-mod cmd=add,table=0,prio=2 in_port=1,eth_type=0x800,ip_proto=17 '
                    'apply:queue=2,output=2'])
        try:
            yield
        finally:
            self.only(flowload.wires())
            self.dpctl(['qos-clear port=2'])


class Unmeasured(Ofqos):
    """What measuring round trips costs is what it saves"""
    title = '--latency=off'
    more = ('--latency=off',)


class UserSpace(Ofqos):
    """Without the kernel as its cache"""
    title = 'in user space'
    offload = False


class Crowded(UserSpace):
    """With 998 more ports, which have nothing to do."""
    title = '1,000 ports'
    IDLE = 998
    made = False

    def interfaces(self):
        names = [f'i{n}' for n in range(self.IDLE)]
        if not self.made:
            lines = [f'link add {a} type veth peer name {b}'
                     for a, b in zip(names[::2], names[1::2])]
            lines += [f'link set {name} up' for name in names]
            subprocess.run(('ip', '-n', self.net.ns['sw'], '-batch', '-'), check=True, text=True,
                           input='\n'.join(lines) + '\n')
            self.made = True
        return ('s1', 's2', *names)


class BusyPoll(UserSpace):
    title = '--busy-poll 1000'
    more = ('--busy-poll', '1000')


class OneWorker(UserSpace):
    """Without a cache and with all tables: packets that are much work for the switch."""
    title = 'no cache, 1 worker'
    more = ('--cache', '0', '--tables', '254')


class TwoWorkers(OneWorker):
    title = 'no cache, 2 workers'
    more = (*OneWorker.more, '--workers', '2')


class Fanout(OneWorker):
    title = 'no cache, fanout to 2'
    more = (*TwoWorkers.more, '--fanout')


def listens(path):
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(path)
            return True
        except OSError:
            return False


class Ovs(Ofqos):
    """Open vSwitch in user space, with a database of its own."""
    title = 'OVS netdev'
    qos = False
    datapath = 'netdev'
    port_type = None
    settings = ()

    def launch(self):
        self.directory = tempfile.mkdtemp(prefix='ofqos-bench-')
        d = self.directory
        self.address = f'unix:{d}/br0.mgmt'
        env = dict(os.environ, OVS_RUNDIR=d, OVS_LOGDIR=d, OVS_DBDIR=d, OVS_SYSCONFDIR=d)
        run('ovsdb-tool', 'create', f'{d}/conf.db', OVS_SCHEMA)
        self.processes.append(self.net.start(
            'sw', 'ovsdb-server', f'{d}/conf.db', f'--remote=punix:{d}/db.sock',
            f'--unixctl={d}/db.ctl', env=env))
        self.wait_for(f'{d}/db.sock')
        vsctl = ('ovs-vsctl', f'--db=unix:{d}/db.sock', '--no-wait')
        run(*vsctl, 'init')
        for setting in self.settings:
            run(*vsctl, 'set', 'Open_vSwitch', '.', setting)
        self.processes.append(self.net.start(
            'sw', 'ovs-vswitchd', f'unix:{d}/db.sock', *self.without_kernel(),
            f'--unixctl={d}/vswitchd.ctl', env=env))
        run(*vsctl, 'add-br', 'br0', '--', 'set', 'bridge', 'br0', f'datapath_type={self.datapath}',
            'protocols=OpenFlow13', 'fail_mode=secure')
        for i in '12':
            kind = (f'type={self.port_type}',) if self.port_type else ()
            run(*vsctl, 'add-port', 'br0', 's' + i, '--', 'set', 'interface', 's' + i,
                f'ofport_request={i}', *kind)
        self.vsctl = vsctl
        self.wait_for(f'{d}/br0.mgmt')
        self.load(flowload.wires())

    def without_kernel(self):
        return ('--disable-system',)

    def settle(self):
        time.sleep(1)
        for i in '12':
            if run(*self.vsctl, 'get', 'interface', 's' + i, 'ofport').strip() != i:
                why = run(*self.vsctl, 'get', 'interface', 's' + i, 'error').strip()
                raise Failure(f'port s{i}: {why}')

    def queues(self, n, rate=0):
        raise Failure('has no queues with a userspace datapath')


class OvsTso(Ovs):
    title = 'OVS userspace-tso'
    settings = ('other_config:userspace-tso-enable=true',)


class OvsKernel(Ovs):
    """Open vSwitch as most people run it: its kernel module forwards."""
    title = 'OVS kernel'
    datapath = 'system'
    qos = True

    def without_kernel(self):
        return ()

    def queues(self, n, rate=0):
        run(*self.vsctl, 'clear', 'port', 's2', 'qos', '--', '--all', 'destroy', 'qos', '--', '--all',
            'destroy', 'queue')
        if not n:
            return
        made = [f'queues:{q}=@q{q}' for q in range(n)]
        for q in range(n):
            made += ['--', f'--id=@q{q}', 'create', 'queue', f'other-config:min-rate={rate or queue_rate(q + 1)}',
                     f'other-config:max-rate={rate or 40_000_000_000}']
        run(*self.vsctl, 'set', 'port', 's2', 'qos=@qos', '--', '--id=@qos', 'create', 'qos', 'type=linux-htb',
            'other-config:max-rate=40000000000', *made)
        self.wait_for_classes(n)

    def wait_for_classes(self, n):
        """ovs-vswitchd makes them when it has read its database"""
        deadline = time.monotonic() + 20
        while run(*self.net.inside('sw', 'tc', 'class', 'show', 'dev', 's2')).count('class htb') < n:
            if time.monotonic() > deadline:
                raise Failure('the classes do not come')
            time.sleep(0.1)


class OvsXdp(Ovs):
    title = 'OVS AF_XDP'
    port_type = 'afxdp'
    always_busy = True
    openflow = False       # started anew each time: no place for large tables


SUBJECTS = {'bridge': Bridge, 'relay': Relay, 'ours': Ofqos, 'userspace': UserSpace,
            'flower': Flower, 'flowtable': Flowtable, 'unmeasured': Unmeasured, 'crowded': Crowded,
            'busy': BusyPoll, 'one': OneWorker, 'two': TwoWorkers, 'fanout': Fanout, 'ovs': Ovs,
            'ovs-kernel': OvsKernel, 'ovs-tso': OvsTso, 'ovs-xdp': OvsXdp}
OURS = ('ours', 'userspace', 'unmeasured', 'crowded', 'busy', 'one', 'two', 'fanout')
BEFORE = ' before'     # behind a key of OURS: the same of the build that --before names


def before(key):
    """What is compared with `key` when the build before is measured too"""
    return key + BEFORE if key in OURS else key


def make_subject(key, build, build_before):
    made = SUBJECTS[key.removesuffix(BEFORE)](build, build_before if BEFORE in key else None)
    if BEFORE in key:
        made.title += ', before'
    return made


QUICK = ('bridge', 'relay', 'ours', 'ovs')
