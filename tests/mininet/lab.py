# SPDX-License-Identifier: Apache-2.0
"""docs/how-to/network.md's lab: a tree of switches with Faucet, ofqos-network, ofqos-exporter and Prometheus.

    lab.py DEPTH FANOUT [whole]

Each step prints a line of JSON, {"step": ..., "found": ...} or {"step": ..., "failed": ...}; the first one that
fails is the last.  Mininet's own output is between them."""
import functools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import traceback
import urllib.parse
import urllib.request

from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import RemoteController, UserSwitch
from mininet.topolib import TreeTopo

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import wait  # noqa: E402

PACKAGE = '/tmp/repository/controllers/python'
FAUCET, NETWORK, EXPORTER, PROMETHEUS = 6653, 6654, 9653, 9090
until = functools.partial(wait.until, seconds=120)      # for what takes one on a machine that is not busy
EF = 46 << 2
# Each of what is installed for it: Faucet wants an older os-ken.
ENV = dict(os.environ, PYTHONPATH=f'/tmp/build/os-ken:{PACKAGE}', FAUCET_CONFIG='/tmp/faucet.yaml', FAUCET_LOG='/tmp/faucet.log',
           FAUCET_EXCEPTION_LOG='/tmp/faucet-exception.log', FAUCET_EVENT_SOCK='0', FAUCET_PROMETHEUS_ADDR='127.0.0.1')

FAUCET_DP = '  {name}: {{dp_id: {id}, hardware: NoviFlow, interfaces: {{{ports}}}}}\n'
POLICY = """
revision: {revision}
on_drift: mend
profiles:
  access:
    lines:
      - htb class=0,rate={rate}mbit
      - htb class=10,name=voice,rate=2mbit,ceil=100%,prio=0,promise=2s
      - htb class=20,name=small,rate=100kbit,ceil=100kbit
      - htb class=30,name=rest,rate=60%,ceil=100%
      - htb default=rest
      - pfifo class=small,limit=20
maps:
  classes: {{rules: ['queue=10,dscp=ef', 'queue=20,udp_dst=9'], table: 0, then: 'goto:1', beside: yes}}
switches:
{switches}
apply:
  - {{to: all, map: classes}}
  - to: [{others}]
    ports: {{all: access}}
  - to: {last}
    ports: {{{ports}: access}}
"""
POLICY_FILE = '/tmp/policy.yaml'
SCRAPE = """
global: {{scrape_interval: 3s, scrape_timeout: 3s, evaluation_interval: 1s}}
rule_files: [/tmp/rules.yaml, /tmp/repository/packaging/prometheus/ofqos.rules.yml]
scrape_configs:
  - job_name: ofqos
    static_configs: [{{targets: ['127.0.0.1:{exporter}']}}]
"""
RULES = """
groups:
  - name: lab
    rules:
      - alert: LabQueueDrops
        expr: increase(ofqos_queue_drops_total{queue=~"[0-9]+"}[1m]) > 0
"""


def sh(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=True, text=True).stdout


def started(name, *command, **more):
    """A service, with more of its environment; its log is in a file that the test reads"""
    with open(f'/tmp/{name}.log', 'ab') as log:
        return subprocess.Popen(command, env=dict(ENV, **more), stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def tool(name, *words, check=True):
    """A command of the package -> (exit status, what it said)"""
    done = subprocess.run([sys.executable, '-m', name, *words], env=ENV, stdin=subprocess.DEVNULL, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert not check or not done.returncode, done.stdout
    return done.returncode, done.stdout


def classes(interface):
    """{class: (rate, ceil)} in the kernel, without Linux's own and the switch's default"""
    said = sh('tc', 'class', 'show', 'dev', interface)
    return {minor: (rate, ceil) for minor, rate, ceil in
            re.findall(r'class htb 1:(\w+) .*? rate (\w+) ceil (\w+)', said) if minor in ('a', '14', '1e')}


def counted(interface, minor, what='pkt'):
    """Packets of a class that were sent, or dropped"""
    said = sh('tc', '-s', 'class', 'show', 'dev', interface, 'classid', f'1:{minor}')
    return int(re.search(r'Sent \d+ bytes (\d+) pkt' if what == 'pkt' else r'dropped (\d+)', said)[1])


def daemon(switch):
    """(pid, command) of its ofdatapath; None where there is none"""
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline') as f:
                words = f.read().split('\0')[:-1]
        except OSError:
            continue
        if words and words[0].endswith('ofdatapath') and f'punix:/tmp/{switch.name}' in words:
            return int(pid), words
    return None


def cold_starts():
    """How often Faucet has begun with a switch, which is by deleting all its flows"""
    with open('/tmp/faucet.log') as f:
        return f.read().count('Cold start configuring DP')


def asked(path, **query):
    """Prometheus's answer; None while there is none"""
    try:
        url = f'http://127.0.0.1:{PROMETHEUS}/api/v1/{path}?{urllib.parse.urlencode(query)}'
        with urllib.request.urlopen(url, timeout=20) as reply:
            return json.load(reply)['data']
    except OSError:
        return None


def value(expression):
    found = asked('query', query=expression)
    return float(found['result'][0]['value'][1]) if found and found['result'] else None


def firing():
    return [alert for alert in (asked('alerts') or {'alerts': []})['alerts'] if alert['state'] == 'firing']


class Lab:
    def __init__(self, depth, fanout):
        self.topo = TreeTopo(depth=depth, fanout=fanout)
        self.net, self.services = None, {}

    # ------------------------------------------------------------- what is there

    def ports(self, switch):
        """Interface names of its ports, by number"""
        return {switch.ports[i]: i.name for i in switch.intfList() if not i.IP()}

    def interfaces(self):
        return [name for switch in self.net.switches for name in self.ports(switch).values()]

    def policy(self, revision, rate=50, path=POLICY_FILE, last_ports='all'):
        """Writes the file -> its name; the last switch may have a wrong one."""
        *others, last = self.net.switches
        switches = ''.join(f'  - {{id: {s.dpid.lstrip("0")}, name: {s.name}}}\n' for s in self.net.switches)
        with open(path, 'w') as f:
            f.write(POLICY.format(revision=revision, rate=rate, switches=switches.rstrip(), last=last.name,
                                  others=', '.join(s.name for s in others), ports=last_ports))
        return path

    def everywhere(self, wanted):
        return all(wanted(classes(name)) for name in self.interfaces())

    def mapped(self, switch):
        return 'queue=10' in sh('dpctl', f'unix:/tmp/{switch.name}.listen', 'stats-flow', 'table=0')

    def pings(self, one, other, tos=0, count=1):
        return ' 0% packet loss' in one.cmd(f'ping -c {count} -i 0.2 -W 2 -Q {tos} {other.IP()}')

    def path(self, one, other):
        """Interfaces by which packets between the two hosts leave the switches"""
        ways = {one: []}
        queue = [one]
        for node in queue:
            for intf in node.intfList():
                if intf.link:
                    far = intf.link.intf2 if intf.link.intf1 is intf else intf.link.intf1
                    if far.node not in ways:
                        ways[far.node] = ways[node] + [intf.name]
                        queue.append(far.node)
        return ways[other][1:]

    def all_as(self, rate):
        """Every port has the policy's classes, every switch its map."""
        wanted = {'a': ('2Mbit', f'{rate}Mbit'), '14': ('100Kbit', '100Kbit'), '1e': (f'{rate * 6 // 10}Mbit', f'{rate}Mbit')}
        until(lambda: self.everywhere(lambda found: found == wanted), f'all ports have {wanted}')
        until(lambda: all(map(self.mapped, self.net.switches)), 'all switches have the map')

    def faucet(self):
        self.services['faucet'] = started('faucet-output', sys.executable, '-m', 'os_ken.cmd.manager',
                                          '--ofp-listen-host=127.0.0.1', f'--ofp-tcp-listen-port={FAUCET}', 'faucet.faucet',
                                          PYTHONPATH='/tmp/build/faucet')
        until(lambda: sh('ss', '-Hltn', f'sport = {FAUCET}'), 'Faucet listens')

    # --------------------------------------------------------------------- steps

    def begin(self):
        """Faucet forwards between all hosts' switches."""
        setLogLevel('warning')
        self.net = Mininet(self.topo, switch=functools.partial(UserSwitch, dpopts='--workers=1 --ring-memory=2mb'),
                           controller=None, autoSetMacs=True, waitConnected=False)
        for name, port in ('c0', FAUCET), ('c1', NETWORK):
            self.net.addController(name, RemoteController, ip='127.0.0.1', port=port)
        with open('/tmp/faucet.yaml', 'w') as f:
            # A tree has no loop, so its links are ports like others.
            f.write('vlans: {office: {vid: 100}}\ndps:\n' + ''.join(FAUCET_DP.format(
                name=s.name, id=int(s.dpid, 16), ports=', '.join(f'{n}: {{native_vlan: office}}' for n in self.ports(s)))
                for s in self.net.switches))
        self.faucet()
        self.net.start()
        first, *others = self.net.hosts
        for host in others[::2] + others[-1:]:
            until(lambda: self.pings(first, host), f'{host} answers {first}')
        return {'switches': len(self.net.switches), 'hosts': len(self.net.hosts), 'links': len(self.net.links)}

    def policy_applied(self):
        """All classes of all ports in the kernel, and the map in front of Faucet's flows."""
        self.policy(1)
        self.services['network'] = started('network', sys.executable, '-m', 'ofqos.network.cli', '--state=/tmp/network',
                                           'run', POLICY_FILE, '--listen', f'127.0.0.1:{NETWORK}')
        self.all_as(50)
        first, *_, last = self.net.hosts
        assert self.pings(first, last), 'Faucet forwards as before'
        return {'ports': len(self.interfaces()), 'classes': classes(self.interfaces()[0])}

    def queue(self):
        """Marked packets take their queue on each hop."""
        first, *_, last = self.net.hosts
        hops = self.path(first, last)
        before = [counted(name, 'a') for name in hops]
        until(lambda: self.pings(first, last, EF, 5), 'five of five answers')
        after = [counted(name, 'a') for name in hops]
        assert all(now - was >= 5 for was, now in zip(before, after)), (hops, before, after)
        assert not any(counted(name, '14') for name in hops)
        return {'hops': hops}

    def killed(self):
        """A switch is killed, its queues are lost, and it comes back; its neighbours notice nothing."""
        switch, others = self.net.switches[-1], self.net.switches[:-1]
        mine = list(self.ports(switch).values())
        pid, command = daemon(switch)
        os.kill(pid, signal.SIGKILL)
        until(lambda: not daemon(switch), 'it is gone')
        for name in mine:
            subprocess.run(['tc', 'qdisc', 'del', 'dev', name, 'root'], check=False)
        assert not any(classes(name) for name in mine)
        others = [name for other in others for name in self.ports(other).values()]
        was = {name: sh('tc', 'class', 'show', 'dev', name) for name in others}
        switch.cmd(shlex.join(command) + f' >>/tmp/{switch.name}-ofd.log 2>&1 &')
        self.all_as(50)
        assert was == {name: sh('tc', 'class', 'show', 'dev', name) for name in others}
        first, *_, last = self.net.hosts
        until(lambda: self.pings(first, last, EF), 'its hosts are reached again')
        self.all_as(50)             # also behind Faucet, which deletes all flows of a switch that comes
        return {'switch': switch.name}

    def faucet_anew(self):
        """A Faucet that begins deletes all flows; the map comes back by itself, and the queues were never gone."""
        was = {name: sh('tc', 'class', 'show', 'dev', name) for name in self.interfaces()}
        self.services['faucet'].terminate()
        self.services['faucet'].wait(20)
        known = cold_starts()
        self.faucet()
        first, *_, last = self.net.hosts
        until(lambda: cold_starts() >= known + len(self.net.switches), 'Faucet begins anew with each switch')
        began = time.monotonic()
        until(lambda: self.pings(first, last), 'Faucet forwards again')
        self.all_as(50)
        assert was == {name: sh('tc', 'class', 'show', 'dev', name) for name in self.interfaces()}
        return {'mapped after': round(time.monotonic() - began, 1)}

    def refused(self):
        """What one switch can't have, none gets; what the file says wrong is told with its line."""
        wrong = self.policy(2, rate=60, path='/tmp/wrong.yaml', last_ports='99')
        status, said = tool('ofqos.network.cli', '--state=/tmp/network', 'apply', wrong, check=False)
        assert status == 1 and self.net.switches[-1].name in said, said
        rates = {rates[1] for name in self.interfaces() for rates in [classes(name)['a']]}
        assert rates == {'50Mbit'}, rates
        self.policy(2, rate='fast', path=wrong)
        status, told = tool('ofqos.network.cli', 'check', wrong, check=False)
        assert status == 1 and 'fast' in told and f'{wrong}:' in told, told
        self.all_as(50)
        return {'said': said.strip()}

    def drift(self):
        """What tc changes by hand, and what it deletes, is mended."""
        one, *_, other = self.interfaces()
        sh('tc', 'class', 'change', 'dev', one, 'parent', '1:1', 'classid', '1:a', 'htb', 'rate', '1mbit', 'ceil', '1mbit')
        sh('tc', 'class', 'del', 'dev', other, 'classid', '1:14')
        assert classes(one) != classes(other)
        began = time.monotonic()
        self.all_as(50)
        return {'mended after': round(time.monotonic() - began, 1)}

    def metrics(self):
        """Prometheus has each queue of each port of each switch."""
        self.services['exporter'] = started('exporter', sys.executable, '-m', 'ofqos.exporter', '--listen',
                                            f'127.0.0.1:{EXPORTER}', *(f'unix:/tmp/{s.name}.listen' for s in self.net.switches))
        with open('/tmp/rules.yaml', 'w') as f:
            f.write(RULES)
        with open('/tmp/prometheus.yaml', 'w') as f:
            f.write(SCRAPE.format(exporter=EXPORTER))
        self.services['prometheus'] = started('prometheus', 'prometheus', '--config.file=/tmp/prometheus.yaml',
                                              '--storage.tsdb.path=/tmp/prometheus',
                                              f'--web.listen-address=127.0.0.1:{PROMETHEUS}')
        ports = len(self.interfaces())
        for queue in '10', '20', '30':
            count = f'count(ofqos_queue_info{{queue="{queue}",direction="out"}})'
            until(functools.partial(lambda asked_for: value(asked_for) == ports, count), f'queue {queue} of {ports} ports')
        sums = value('sum(ofqos_queue_transmit_packets_total{queue="10"})')
        assert sums >= 5, sums
        return {'queues': 3 * ports, 'series': value('count({__name__=~"ofqos_.*"})')}

    def alert(self):
        """A queue that drops what it gets"""
        first, *_, last = self.net.hosts
        assert not firing()
        flood = f"import socket; s = socket.socket(2, 2); [s.sendto(bytes(100), ('{last.IP()}', 9)) for _ in range(500)]"

        hop = self.path(first, last)[0]

        def sends(ask):
            first.cmd(f'{sys.executable} -c "{flood}"')
            return ask()
        until(lambda: sends(lambda: counted(hop, '14', 'dropped')), f'drops at {hop}')
        try:
            fired = until(lambda: sends(firing), 'an alert')
        except AssertionError as e:
            raise AssertionError(f'{e}: {asked("targets")} {asked("rules")}') from e
        assert {(alert['labels']['alertname'], alert['labels']['queue']) for alert in fired} == {('LabQueueDrops', '20')}, fired
        return {'fired': [{k: alert['labels'].get(k) for k in ('alertname', 'dp', 'port', 'queue')} for alert in fired]}

    def end(self):
        for service in reversed(self.services.values()):
            service.terminate()
        for service in self.services.values():
            try:
                service.wait(20)
            except subprocess.TimeoutExpired:
                service.kill()
        if self.net:
            self.net.stop()


STEPS = ['begin', 'policy_applied', 'queue', 'killed', 'refused', 'drift', 'metrics', 'alert']
WHOLE = STEPS + ['faucet_anew']


def main(depth, fanout, whole=''):
    lab = Lab(depth, fanout)
    try:
        for name in WHOLE if whole else STEPS:
            began = time.monotonic()
            try:
                found = getattr(lab, name)()
            except Exception:       # pylint: disable=broad-except
                print('\nSTEP ' + json.dumps({'step': name, 'failed': traceback.format_exc()}), flush=True)
                return 1
            print('\nSTEP ' + json.dumps({'step': name, 'found': found,
                                          'seconds': round(time.monotonic() - began, 1)}), flush=True)
    finally:
        lab.end()
    return 0


if __name__ == '__main__':
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
