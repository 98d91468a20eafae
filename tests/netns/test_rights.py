# SPDX-License-Identifier: Apache-2.0
"""What the daemon may do once it runs (docs/explanation/security.md): read off /proc, and tried."""
import collections
import contextlib
import ctypes
import functools
import grp
import os
import pwd
import re
import shutil
import signal
import socket
import struct
import subprocess

import pytest

from support import of13, pki
from support.topo import Switch, Topology, binary, dpctl, inside, sh
from support.wait import until

NET_BIND_SERVICE, NET_ADMIN, NET_RAW, BPF = (1 << n for n in (10, 12, 13, 39))
PERFMON = 1 << 38
OF_A_SWITCH = NET_ADMIN | NET_RAW | BPF | PERFMON
DAC_OVERRIDE = 1 << 1
NOBODY = pwd.getpwnam('nobody').pw_uid
NOT_STRICT = '--confine=on'


@pytest.fixture(scope='module', name='net')
def one_network():
    with Topology(ports=2) as topo:
        yield topo


def pid_of(switch):
    """Of the daemon itself: ip netns exec became it"""
    return switch.process.pid


def status(pid, thread=None):
    path = f'/proc/{pid}/status' if thread is None else f'/proc/{pid}/task/{thread}/status'
    with open(path, encoding='ascii') as f:
        return dict(line.rstrip('\n').split(':\t', 1) for line in f)


def threads(pid):
    return os.listdir(f'/proc/{pid}/task')


def capabilities(pid, which='CapPrm'):
    return int(status(pid)[which], 16)


def has_filter():
    """Whether this build has the filter (a name of its list; libseccomp may be linked statically), and this
    kernel seccomp"""
    with open(binary('datapath/ofdatapath'), 'rb') as f:
        return os.path.exists('/proc/sys/kernel/seccomp/actions_avail') and b'arm_fadvise64_64' in f.read()


@functools.lru_cache(None)
def reads_configuration():
    """Whether this build has libinih"""
    said = subprocess.run([binary('datapath/ofdatapath'), '--check=/dev/null'], check=False, stderr=subprocess.PIPE)
    return b"can't read configuration" not in said.stderr


def has_landlock():
    return ctypes.CDLL(None, use_errno=True).syscall(444, None, 0, 1) > 0


def test_capabilities_are_those_of_a_switch(net):
    for how in 'auto', 'off':       # both load programs
        with Switch(net, f'--offload={how}') as switch:
            for which in 'CapPrm', 'CapEff', 'CapBnd':
                assert not capabilities(pid_of(switch), which) & ~OF_A_SWITCH, which
            assert capabilities(pid_of(switch)) & (NET_ADMIN | NET_RAW) == NET_ADMIN | NET_RAW


def test_rights_for_programs_that_are_refused_are_given_up(tmp_path):
    """Without /sys nobody knows how many processors there may be."""
    if not has_programs():
        pytest.skip('this build has no programs for the kernel')
    hidden = ['unshare', '--mount', '--net', 'sh', '-c', 'mount -t tmpfs tmpfs /sys && exec "$0" "$@"']
    words = [binary('datapath/ofdatapath'), '--datapath-id=000000000001', f'punix:{tmp_path}/sock']
    with subprocess.Popen(hidden + words, stderr=subprocess.PIPE, text=True) as switch:
        try:
            until(lambda: os.path.exists(f'{tmp_path}/sock') and not capabilities(switch.pid, 'CapEff') & (BPF | PERFMON))
            assert capabilities(switch.pid, 'CapEff') & NET_ADMIN
        finally:
            switch.terminate()
        assert 'is /sys mounted?' in switch.stderr.read()


def has_programs():
    """Whether this build has some for the kernel"""
    with open(binary('datapath/ofdatapath'), 'rb') as f:
        return b'the kernel refused the programs' in f.read()


def test_every_thread_is_confined(net):
    with Switch(net, '--workers=2') as switch:
        pid = pid_of(switch)
        assert len(threads(pid)) >= 3
        for thread in threads(pid):
            said = status(pid, thread)
            assert said['NoNewPrivs'] == '1'
            assert not int(said['CapPrm'], 16) & ~OF_A_SWITCH
            assert not int(said['CapEff'], 16) & (BPF | PERFMON) & ~capabilities(pid, 'CapEff'), status(pid, thread)['Name']
            if has_filter():
                assert said['Seccomp'] == '2'


def test_it_can_be_left_out(net):
    with Switch(net, '--confine=off') as switch:
        said = status(pid_of(switch))
        assert (said['NoNewPrivs'], said['Seccomp']) == ('0', '0')
        assert capabilities(pid_of(switch)) == capabilities('self')


def test_memory_is_not_for_others(net):
    with Switch(net) as switch:
        with open(f'/proc/{pid_of(switch)}/limits', encoding='ascii') as f:
            assert re.search(r'Max core file size +0 ', f.read())
        as_same = ['setpriv', '--bounding-set=-all', '--inh-caps=-all', '--clear-groups']
        read = [*as_same, 'head', '-c', '1', f'/proc/{pid_of(switch)}/environ']
        assert subprocess.run(read, check=False, stderr=subprocess.DEVNULL).returncode
    with Switch(net, '--core-dumps', NOT_STRICT) as switch:
        with open(f'/proc/{pid_of(switch)}/limits', encoding='ascii') as f, \
                open('/proc/self/limits', encoding='ascii') as ours:
            wanted = re.search(r'Max core file size.*', ours.read()).group()
            assert wanted in f.read()
    with Owned(NOBODY) as home, at(net, home, '--core-dumps', '--user=nobody') as switch:
        assert os.stat(f'/proc/{pid_of(switch)}').st_uid == NOBODY      # root's where it can't be dumped


class Owned:
    """A directory of a user's, where a switch can have its files."""

    def __init__(self, uid, mode=0o755):
        self.uid, self.mode, self.path = uid, mode, f'/tmp/ofqos-rights-{os.getpid()}'

    def __enter__(self):
        os.mkdir(self.path)
        os.chown(self.path, self.uid, -1)
        os.chmod(self.path, self.mode)
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path)


@contextlib.contextmanager
def at(net, home, *options):
    """A switch whose socket is in this directory"""
    with Switch(net, f'punix:{home}/s', *options, listen=False, wait=False) as switch:
        switch.path, switch.address = f'{home}/s', f'unix:{home}/s'
        switch.wait_ready()
        yield switch


def pid_at(path):
    """Who listens at the socket"""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        return struct.unpack('3i', s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


GAMES = grp.getgrnam('games').gr_gid


@pytest.mark.parametrize('user,options,group', [
    (0, (), 0), (0, ('--socket-group=daemon',), grp.getgrnam('daemon').gr_gid),
    (NOBODY, ('--user=nobody',), pwd.getpwnam('nobody').pw_gid)])
def test_a_socket_in_a_directory_of_a_group(net, user, options, group):
    """The setgid bit gives files to the directory's group; who may change the switch isn't its business"""
    with Owned(user) as home:
        os.chown(home, user, GAMES)
        os.chmod(home, 0o2775)
        with at(net, home, *options) as switch:
            made = os.stat(f'{home}/s')
            assert (made.st_uid, made.st_gid, made.st_mode & 0o7777) == (user, group, 0o660)
            as_player = ['setpriv', '--reuid=65533', f'--regid={GAMES}', '--clear-groups', '/usr/bin/python3', '-c',
                         f'import socket; socket.socket(socket.AF_UNIX).connect("{home}/s")']
            assert b'PermissionError' in subprocess.run(as_player, check=False, stderr=subprocess.PIPE).stderr
            switch.dpctl('status')


def write_conf(home, *lines):
    with open(f'{home}/conf', 'w', encoding='ascii') as f:
        f.write(''.join(line + '\n' for line in lines))


@contextlib.contextmanager
def by_file(net, home, *lines):
    """A switch with this configuration, whose first line makes the socket `a`"""
    if not reads_configuration():
        pytest.skip('this build has no libinih')
    write_conf(home, f'listen = punix:{home}/a', *lines)
    with Switch(net, f'--config={home}/conf', listen=False, wait=False) as switch:
        switch.path, switch.address = f'{home}/a', f'unix:{home}/a'
        switch.wait_ready()
        yield switch


def test_another_user(net):
    with Owned(NOBODY) as home, at(net, home, '--user=nobody', f'--state={home}/state', f'--log-file={home}/log',
                                   f'--pidfile={home}/pid') as switch:
        said = status(pid_of(switch))
        assert said['Uid'].split() == [str(NOBODY)] * 4
        assert str(os.stat(f'{home}/s').st_uid) == str(NOBODY)
        assert not int(said['CapPrm'], 16) & ~OF_A_SWITCH
        switch.dpctl('qos-htb', 'cmd=add,port=1,class=1,rate=1mbit')
        assert 'htb' in sh('ip', 'netns', 'exec', net.switch_ns, 'tc', 'qdisc', 'show', 'dev', 'p1')
        os.rename(f'{home}/log', f'{home}/log.1')
        switch.process.send_signal(signal.SIGHUP)
        until(lambda: os.path.exists(f'{home}/log'))
        assert switch.stop() == 0
        assert os.path.exists(f'{home}/state') and not os.path.exists(f'{home}/pid')


def test_the_host_stays_silent_where_packets_are_shaped(net):
    """By /proc/sys, which needs neither root nor more than the rules give"""
    net.sysctl(net.switch_ns, 'net.ipv6.conf.default.disable_ipv6=0')
    for user, uid in ((), 0), (('--user=nobody',), NOBODY):
        with Owned(uid) as home, at(net, home, *user) as switch:
            switch.dpctl('qos-htb', 'cmd=add,port=1,class=0,rate=100mbit,direction=in')
            said = sh('ip', 'netns', 'exec', net.switch_ns, 'sh', '-c', 'cat /proc/sys/net/ipv6/conf/ofq*/disable_ipv6')
            assert set(said.split()) == {'1'}
    net.sysctl(net.switch_ns, 'net.ipv6.conf.default.disable_ipv6=1')


@pytest.mark.parametrize('user', ['nosuchuser', 'nobody:nosuchgroup', '', '4294967295'])
def test_a_user_that_is_not_there(user):
    done = subprocess.run([binary('datapath/ofdatapath'), '--check', f'--user={user}', 'punix:/tmp/x'], text=True,
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert done.returncode == 1 and '--user must be USER or USER:GROUP' in done.stdout


def test_who_may_not_become_a_user():
    done = subprocess.run(['setpriv', '--reuid=65534', '--clear-groups', binary('datapath/ofdatapath'),
                           '--user=daemon', 'punix:/tmp/x'], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert done.returncode == 1 and 'may not become user' in done.stdout


@pytest.mark.long
@pytest.mark.usefixtures('nobody')
def test_a_restart_stays_confined(net):
    for user, uid in ((), 0), (('--user=nobody',), NOBODY):
        with Owned(uid) as home, at(net, home, *user) as switch:
            for _ in range(3):
                switch.dpctl('restart')
            said = status(pid := pid_at(switch.path))
            assert said['NoNewPrivs'] == '1' and said['Uid'].split()[0] == str(uid)
            assert not int(said['CapPrm'], 16) & ~OF_A_SWITCH
            assert int(said['CapPrm'], 16) & NET_ADMIN
            if has_filter():
                assert (said['Seccomp'], said['Seccomp_filters']) == ('2', '2')
            os.kill(pid, signal.SIGTERM)
            until(lambda: not os.path.exists(f'/proc/{pid}'))


def descriptors(pid):
    """What a process has open, without the numbers of sockets"""
    found = []
    for fd in os.listdir(f'/proc/{pid}/fd'):
        with contextlib.suppress(FileNotFoundError):
            found.append(re.sub(r'[0-9]+', 'N', os.readlink(f'/proc/{pid}/fd/{fd}')))
    return collections.Counter(found)


@pytest.mark.parametrize('io', ['packet', 'pcap'])
def test_a_restart_leaves_no_descriptor_to_the_next_process(net, io):
    with Owned(0) as home, at(net, home, f'--io={io}') as switch:
        before = descriptors(pid_of(switch))
        switch.dpctl('restart')
        pid = pid_at(switch.path)
        until(lambda: not descriptors(pid) - before)
        os.kill(pid, signal.SIGTERM)
        until(lambda: not os.path.exists(f'/proc/{pid}'))


def test_a_restart_tells_what_it_cannot_change(net, monkeypatch):
    """A filter is inherited: neither less nor more than the first process had"""
    monkeypatch.setenv('OFQOS_CONFINE', '')     # the configuration says it
    for before, after in ('on', 'strict'), ('on', 'off'):
        with Owned(0) as home, by_file(net, home, f'confine = {before}') as switch:
            write_conf(home, f'listen = punix:{home}/a', f'confine = {after}')
            switch.dpctl('restart')
            assert f'--confine={after} takes effect when the switch is stopped and started' in switch.output()
            pid = pid_at(switch.path)
            os.kill(pid, signal.SIGTERM)
            until(lambda gone=pid: not os.path.exists(f'/proc/{gone}'))


def test_files_of_others_by_root(net):
    """`sudo ofdatapath --state=mine` in one's own directory"""
    with Owned(NOBODY, 0o700) as home:
        with Switch(net, f'--state={home}/state') as switch:
            assert capabilities(pid_of(switch)) & DAC_OVERRIDE
        assert os.path.exists(f'{home}/state')
    with Owned(0) as home, Switch(net, f'--state={home}/state') as switch:
        assert not capabilities(pid_of(switch)) & DAC_OVERRIDE


def test_a_port_below_1024(net):
    with Switch(net, '--listen=ptcp:653:127.0.0.1') as switch:
        assert capabilities(pid_of(switch)) & NET_BIND_SERVICE


def test_a_group_for_sockets_needs_no_right(net):
    with Owned(0) as home, by_file(net, home, 'socket-group = daemon') as switch:
        assert os.stat(f'{home}/a').st_gid == 1
        write_conf(home, *(f'listen = punix:{home}/{name}' for name in 'ab'), 'socket-group = daemon')
        switch.process.send_signal(signal.SIGHUP)
        until(lambda: os.path.exists(f'{home}/b') and os.stat(f'{home}/b').st_gid == 1)
        # a new group needs a restart
        write_conf(home, *(f'listen = punix:{home}/{name}' for name in 'abc'), 'socket-group = bin')
        switch.process.send_signal(signal.SIGHUP)
        until(lambda: os.path.exists(f'{home}/c') and os.stat(f'{home}/c').st_gid == 1)


def test_a_socket_that_cannot_be_given_is_not_left_behind():
    with Owned(NOBODY) as home:
        done = subprocess.run(['setpriv', f'--reuid={NOBODY}', '--clear-groups', binary('datapath/ofdatapath'),
                               '-d', '000000000001', '--socket-group=bin', f'punix:{home}/s'], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        assert done.returncode == 1 and 'Operation not permitted' in done.stdout
        assert not os.listdir(home)


@pytest.mark.skipif(not has_landlock(), reason='this kernel has no Landlock')
def test_it_writes_where_its_settings_say_alone(net):
    other = f'/var/tmp/ofqos-{os.getpid()}.sock'
    with Owned(0) as home, by_file(net, home) as switch:
        write_conf(home, f'listen = punix:{home}/a', f'listen = punix:{other}')
        switch.process.send_signal(signal.SIGHUP)
        until(lambda: other in switch.output())
        assert not os.path.exists(other)
        assert 'Permission denied' in switch.output()
        assert of13.Conn(switch.address).features()


# ------------------------------------------------------------------------------------ plain TCP

def is_reached(net, host):
    with inside(net.switch_ns):
        with contextlib.suppress(OSError), socket.create_connection((host, 26653), timeout=5):
            return True
    return False


def test_plain_tcp_is_for_this_machine(net):
    sh('ip', '-n', net.switch_ns, 'address', 'replace', '192.0.2.9/32', 'dev', 'lo')
    with Switch(net, 'ptcp:26653') as switch:
        assert is_reached(net, '127.0.0.1') and not is_reached(net, '192.0.2.9')
        assert 'whoever reaches' not in switch.output()
    for address in '0.0.0.0', '[::]':
        with Switch(net, f'ptcp:26653:{address}') as switch:
            assert is_reached(net, '127.0.0.1') and is_reached(net, '192.0.2.9')
            assert f'ptcp:26653:{address}: whoever reaches this address can change the switch' in switch.output()
    with Switch(net, '--plain-listen=allow', 'ptcp:26653:192.0.2.9') as switch:
        assert is_reached(net, '192.0.2.9') and 'whoever reaches' not in switch.output()


def test_plain_tcp_for_others_can_be_forbidden(net):
    def refused(*words):
        done = subprocess.run([binary('datapath/ofdatapath'), '--check', '--plain-listen=refuse', *words], text=True,
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        assert bool(done.returncode) == ('plain-listen=refuse forbids' in done.stdout), done.stdout
        return done.returncode
    for address in 'ptcp:', 'ptcp:1:127.1.2.3', 'ptcp:1:[::1]', 'punix:/tmp/x', 'tcp:192.0.2.1':
        assert not refused(address), address
    for address in 'ptcp:1:0.0.0.0', 'ptcp:1:[::]', 'ptcp:1:192.0.2.1', 'ptcp:1:[2001:db8::1]':
        assert refused(address), address


# ------------------------------------------------------------------------------------ secrets

def test_no_secret_is_told(net, tmp_path):
    """Neither in ps nor in the log at its longest, nor in what dpctl can ask for"""
    authority = pki.Authority(tmp_path, 'ours')
    who = authority.identity('switch')
    if 'no TLS' in dpctl('--ca-cert=x', 'tls:127.0.0.1', 'features', check=False).stderr:
        pytest.skip('this build has no TLS')
    with open(who.key, encoding='ascii') as f:
        secret = [line for line in f.read().splitlines() if not line.startswith('-')]
    with Switch(net, *who.options(), 'ptls:26653:127.0.0.1', '--log=debug', f'--state={tmp_path}/state') as switch:
        with inside(net.switch_ns):
            dpctl(*who.options(), 'tls:127.0.0.1:26653', 'features')
        with open(f'/proc/{pid_of(switch)}/cmdline', encoding='ascii') as f:
            arguments = f.read()
        told = ''.join(switch.dpctl(asked).stdout for asked in ('status', 'counters', 'desc', 'get-config'))
        switch.stop()
        told += switch.output()
    with open(f'{tmp_path}/state', encoding='latin-1') as f:
        told += f.read()
    for line in secret:
        assert line not in arguments and line not in told
