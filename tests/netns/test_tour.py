# SPDX-License-Identifier: Apache-2.0
"""dpctl tour: the whole of it, and that nothing is left of it however it ends."""
import os
import pty
import re
import signal
import subprocess

import pytest

from support import topo
from support.wait import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')

DPCTL = os.path.join(topo.build_directory(), 'utils/dpctl/dpctl')
STEPS = 8


def outside():
    """-> which of a tour's names there are outside its lab: namespaces, interfaces, the socket"""
    return [path for path in ('/run/netns/one', '/run/netns/two', '/sys/class/net/p1', '/sys/class/net/p2',
                              '/run/ofqos/ofdatapath.sock') if os.path.exists(path)]


def processes(name_space):
    """-> {process: command} in this process namespace"""
    found = {}
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            if os.readlink(f'/proc/{pid}/ns/pid') == name_space:
                with open(f'/proc/{pid}/comm', encoding='utf-8') as f:
                    found[int(pid)] = f.read().strip()
        except OSError:
            pass        # it has ended
    return found


def children(pid):
    try:
        with open(f'/proc/{pid}/task/{pid}/children', encoding='utf-8') as f:
            return f.read().split()
    except OSError:
        return []


def lab_of(pid):
    """-> the process namespace of a tour's lab, by the child of unshare"""
    return next((os.readlink(f'/proc/{first}/ns/pid') for lab in children(pid) for first in children(lab)), None)


class Tour:
    """One on a terminal of its own, as a person has it."""

    def __init__(self):
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            signal.signal(signal.SIGINT, signal.SIG_DFL)        # tests that run in the background ignore it
            os.execv(DPCTL, [DPCTL, 'tour'])
        self.seen = ''

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            self.ended()

    def read_until(self, text):
        while text not in self.seen:
            self.seen += os.read(self.terminal, 4096).decode()

    def enter(self, times):
        for _ in range(times):
            self.read_until('q: end] ')
            self.seen = ''
            os.write(self.terminal, b'\n')
        self.read_until('q: end] ')

    def ended(self):
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.pid = None
        return status


def whole():
    done = subprocess.run([DPCTL, 'tour', '--yes'], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, ''), done
    return done.stdout


def test_whole():
    before = outside()
    said = whole()
    assert re.findall(r'^(\d) of 8\.', said, re.M) == [str(i + 1) for i in range(STEPS)]
    without, queued = [float(rate) for rate in re.findall(r' ms: ([\d.]+) Mbit/s$', said, re.M)]
    assert without > 0 and queued < 5.5     # at most its ceiling and what a burst adds; a busy machine may send less in both
    assert re.search(r'^2 +10 +1000 +1442000 ', said, re.M), said
    assert 'Leaves by port 2 (p2), queue 10: at least 5 Mbit/s, at most 5 Mbit/s' in said
    assert said.endswith('man dpctl.\n')
    assert outside() == before


def close(tour):
    os.close(tour.terminal)


@pytest.mark.every
@pytest.mark.parametrize('end, status', [
    (lambda tour: os.write(tour.terminal, b'q\n'), 0),
    (lambda tour: os.write(tour.terminal, b'\x03'), 130),
    (lambda tour: os.kill(tour.pid, signal.SIGTERM), 130),
    (lambda tour: os.kill(tour.pid, signal.SIGKILL), -signal.SIGKILL),
    (close, None)], ids=['q', 'SIGINT', 'SIGTERM', 'SIGKILL', 'terminal'])
def test_ended_in_the_middle(end, status):
    before = outside()
    with Tour() as tour:
        tour.enter(4)
        lab = lab_of(tour.pid)
        assert 'ofdatapath' in processes(lab).values()
        end(tour)
        said = tour.ended()
        assert status in (None, said)
    until(lambda: not processes(lab), 'the lab is still there')
    assert outside() == before


def test_a_step_that_fails():
    with Tour() as tour:
        tour.enter(1)
        lab = lab_of(tour.pid)
        switch, = [pid for pid, command in processes(lab).items() if command == 'ofdatapath']
        os.kill(switch, signal.SIGKILL)
        os.write(tour.terminal, b'\n')
        tour.read_until('dpctl tour: step 2 failed: dpctl show')
        assert tour.ended() == 1
    until(lambda: not processes(lab), 'the lab is still there')


def test_two_at_the_same_time_beside_a_switch():
    with topo.Topology(2) as net, topo.Switch(net) as switch:
        before = switch.dpctl('dump-flows').stdout, switch.dpctl('qos-show').stdout, outside()
        with Tour() as tour:
            tour.enter(4)
            whole()
            tour.enter(1)       # its queue is made now
            os.write(tour.terminal, b'q\n')
            assert tour.ended() == 0
        assert before == (switch.dpctl('dump-flows').stdout, switch.dpctl('qos-show').stdout, outside())


def test_nobody_reads():
    with subprocess.Popen([DPCTL, 'tour', '--yes'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as tour:
        tour.stdout.readline()
        tour.stdout.close()
        assert 'rror' not in tour.stderr.read()
        assert tour.wait(timeout=60) == 1


def test_the_input_ends():
    done = subprocess.run([DPCTL, 'tour'], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, '') and 'q: end] \nThe input has ended' in done.stdout, done
    assert 'dpctl tour --yes' in done.stdout and 'The lab is gone.' in done.stdout, done


def refused(*words, **more):
    done = subprocess.run([DPCTL, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False, **more)
    assert done.returncode and not done.stdout, done
    return done.stderr


def test_what_is_wrong_is_said(tmp_path):
    assert 'tour takes no switch, and can\'t be in a file: type  dpctl tour\n' in refused('unix:/nowhere', 'tour')
    assert "tour takes no arguments, not 'now'" in refused('tour', 'now')
    assert 'there is no --json' in refused('--json', 'tour')
    (tmp_path / 'id').symlink_to('/usr/bin/id')
    assert 'the lab needs, and does not find: unshare (package util-linux)' in refused('tour', env={'PATH': str(tmp_path)})


def test_without_root():
    script = os.path.join(os.path.dirname(DPCTL), 'dpctl-tour.sh')
    with open(script, encoding='utf-8') as f:
        text = f.read()
    done = subprocess.run(['setpriv', '--reuid=65534', '--clear-groups', 'sh', '-c', text, 'sh', '/usr/bin'],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, 'dpctl tour: the lab needs root: type  sudo dpctl tour\n')
