# SPDX-License-Identifier: Apache-2.0
"""Rates as people type and read them: dpctl warns of one without a unit, and queue-get-config shows
what they are."""
import os
import pty
import subprocess

import pytest

from support import tc
from support.topo import binary

ONE_SWITCH = True
ADD = 'cmd=add,port=2,class=1,'


def rate(switch):
    row = tc.classes(switch.topo.switch_ns, 'p2').get(1)
    return row and row['options']['rate']


@pytest.mark.parametrize('text, bits', [('rate=10000', 10_000), ('rate=64000,ceil=1mbit', 64_000)])
def test_a_bare_rate_is_bits_as_for_tc_but_not_silently(switch, text, bits):
    done = switch.dpctl('qos-htb', ADD + text)
    assert rate(switch) == bits
    number = str(bits)
    for words in (f'{number} bit/s', f'write {bits // 1000}kbit'):
        assert words in done.stderr, done.stderr
    assert done.stdout == ''


@pytest.mark.parametrize('text, bits, word', [('rate=6Mbps', 48, '6Mbit'), ('rate=20mbps', 160, '20mbit')])
def test_bps_are_bytes_as_for_tc_but_not_silently(switch, text, bits, word):
    """The number that is taken, and what to write for bits."""
    done = switch.dpctl('qos-htb', ADD + text)
    assert rate(switch) == bits * 1_000_000
    assert f'is {bits}mbit: bps are bytes' in done.stderr and f'write {word}' in done.stderr


@pytest.mark.parametrize('text', ['rate=6MBps', 'rate=6mbit', 'rate=10000bit', 'rate=10%', 'rate=1mbit,ceil=2mbit'])
def test_nothing_is_said_of_one_with_a_unit(switch, text):
    done = switch.dpctl('qos-htb', ADD + text)
    assert (done.stderr, done.stdout) == ('', '') and rate(switch)


def test_other_places_for_rates(switch, tmp_path):
    assert '800000 bit/s' in switch.dpctl('bw-total', 'port=2,out=800000').stderr
    profile = tmp_path / 'mine.qos'
    profile.write_text('htb class=0,rate=10mbit\nhtb class=10,rate=64000,ceil=1mbps\nhtb class=11,rate=0.5mbps\n')
    done = switch.dpctl('qos-apply', str(profile), 'port=3')
    assert 'mine.qos:2:' in done.stderr and '64000 bit/s' in done.stderr, done.stderr
    assert 'ceil=1mbps is 8mbit' in done.stderr and 'mine.qos:3: htb: rate=0.5mbps is 4mbit' in done.stderr
    file = tmp_path / 'commands'
    file.write_text(f'qos-htb {ADD.replace("port=2", "port=4")}rate=64000\n')
    done = switch.dpctl('-F', str(file), '--atomic')
    assert 'commands:1' in done.stderr and '64000 bit/s' in done.stderr, done.stderr


def at_a_terminal(switch, answer, *words):
    """-> exit status, what was shown"""
    here, there = pty.openpty()
    with subprocess.Popen([binary('utils/dpctl/dpctl'), switch.address, *words], stdin=there,
                          stdout=there, stderr=there) as process:
        os.close(there)
        shown = b''
        try:
            while b'[y/N]' not in shown:
                shown += os.read(here, 1000)
            os.write(here, answer)
            while chunk := os.read(here, 1000):
                shown += chunk
        except OSError:         # it has ended
            pass
        os.close(here)
        return process.wait(30), shown.decode()


@pytest.mark.parametrize('answer', [b'y\n', b'n\n'])
def test_on_a_terminal_a_profiles_rates_are_asked_about(switch, answer, tmp_path):
    profile = tmp_path / 'mine.qos'
    profile.write_text('htb class=1,rate=1mbps\n')
    status, shown = at_a_terminal(switch, answer, 'qos-apply', str(profile), 'port=2')
    assert 'rate=1mbps is 8mbit' in shown and 'Go on?' in shown
    assert (status, rate(switch)) == ((0, 8_000_000) if answer == b'y\n' else (2, None))


@pytest.mark.parametrize('answer', [b'y\n', b'n\n', b'\n'])
def test_on_a_terminal_it_is_asked_about(switch, answer):
    status, shown = at_a_terminal(switch, answer, 'qos-htb', ADD + 'rate=64000')
    assert 'write 64kbit' in shown and 'Go on?' in shown
    assert (status, rate(switch)) == ((0, 64_000) if answer == b'y\n' else (2, None))


def rows(text):
    return [line.split(None, 2) for line in text.splitlines()[1:]]


def test_queue_get_config_shows_rates(switch):
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit')
    switch.dpctl('queue-mod', '2', '20', '80', '50%')
    switch.dpctl('qos-htb', 'cmd=add,port=3,class=10,rate=1gbit')
    first, second = rows(switch.dpctl('queue-get-config', '2').stdout)
    assert first[:2] == ['2', '10'] and first[2].split() == ['6mbit', '(0.06%)', '10mbit', '(0.1%)']
    assert second[:2] == ['2', '20'] and second[2].split() == ['800mbit', '(8%)', '5gbit', '(50%)']
    assert [r[:2] for r in rows(switch.dpctl('queue-get-config').stdout)] == \
        [['2', '10'], ['2', '20'], ['3', '10']]
    assert switch.dpctl('queue-get-config', '4').stdout.count('\n') == 1


def test_queue_get_config_of_a_port_that_is_not_there(switch):
    done = switch.dpctl('queue-get-config', '9', check=False)
    assert done.returncode == 1 and 'BAD_PORT' in done.stderr
