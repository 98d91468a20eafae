# SPDX-License-Identifier: Apache-2.0
"""The tab key in real shells, beside a running switch."""
import os
import shutil

import pytest

from support.shell import Shell
from support.topo import REPOSITORY, binary, build_directory

ONE_SWITCH = True
SCRIPTS = os.path.join(REPOSITORY, 'packaging/completion')
SHELLS = {
    'bash': (['bash', '--norc', '--noprofile', '-i'],
             f'. {SCRIPTS}/ofqos.bash; bind "set show-all-if-ambiguous on" '
             '"set bell-style none" "set page-completions off"'),
    'zsh': (['zsh', '-f', '-i'],
            f'fpath=({SCRIPTS} $fpath); autoload -Uz compinit; compinit -u -D; '
            'unsetopt beep prompt_cr prompt_sp; zstyle ":completion:*" list-prompt ""'),
}


@pytest.fixture(params=SHELLS)
def shell(request, switch):
    """A shell whose dpctl talks to a switch with queues, a group and a meter"""
    if not shutil.which(request.param):
        pytest.skip(f'{request.param} is not installed')
    for command in ('qos-htb cmd=add,port=2,class=10,rate=6mbit',
                    'qos-htb cmd=add,port=3,class=77,rate=1mbit',
                    'group-mod cmd=add,type=all,group=4711 output=1',
                    'meter-mod cmd=add,flags=kbps,meter=815 drop:rate=1000',
                    'flow-mod cmd=add,table=33 apply:output=1'):
        switch.dpctl(*command.split())
    directories = [os.path.dirname(binary(name)) for name in
                   ('utils/dpctl/dpctl', 'datapath/ofdatapath', 'utils/ofprotocol/ofprotocol')]
    command, setup = SHELLS[request.param]
    env = {'DPCTL_SWITCH': switch.address, 'PATH': ':'.join([*directories, os.environ['PATH']])}
    with Shell(command, setup, env) as s:
        yield s


def test_what_is_unique_is_completed(shell):
    for keys, line in (('dpctl featur\t', 'dpctl features'),
                       ('dpctl --time\t', 'dpctl --timeout'),
                       ('dpctl flow-mod cmd=add,id\t', 'dpctl flow-mod cmd=add,idle='),
                       ('dpctl stats-queue 2 1\t', 'dpctl stats-queue 2 10'),
                       ('dpctl qos-htb cmd=del,port=p3,class=\t',
                        'dpctl qos-htb cmd=del,port=p3,class=77'),
                       ('dpctl stats-group 4\t', 'dpctl stats-group 4711'),
                       ('dpctl flow-mod cmd=add meter:8\t', 'dpctl flow-mod cmd=add meter:815'),
                       ('dpctl flow-mod cmd=del,table=3\t', 'dpctl flow-mod cmd=del,table=33'),
                       ('dpctl flow-mod cmd=add apply:set_field=ipv6_s\t',
                        'dpctl flow-mod cmd=add apply:set_field=ipv6_src:'),
                       ('dpctl qos-cake diffserv=b\t', 'dpctl qos-cake diffserv=besteffort'),
                       ('dpctl help qos-appl\t', 'dpctl help qos-apply'),
                       ('ofdatapath --fail=o\t', 'ofdatapath --fail=open'),
                       ('ofdatapath -i l\t', 'ofdatapath -i lo'),
                       ('ofprotocol --inac\t', 'ofprotocol --inactivity-probe=')):
        assert shell.line(keys) == line


def test_what_is_not_is_listed(shell):
    shell.type('dpctl stats-port p\t\t')
    for name in ('p1', 'p2', 'p3', 'p4'):
        shell.wait_for(rf'\b{name}\b')
    assert shell.line('').startswith('dpctl stats-port p')


def test_files(shell, tmp_path):
    (tmp_path / 'queues-at-home.qos').touch()
    for words in ('dpctl qos-apply', 'dpctl -F', 'ofdatapath --private-key'):
        line = shell.line(f'{words} {tmp_path}/queues\t')
        assert line == f'{words} {tmp_path}/queues-at-home.qos'


def test_without_a_switch_the_line_stays(shell):
    assert shell.line('dpctl unix:/nonexistent stats-group 4\t') == \
        'dpctl unix:/nonexistent stats-group 4'


def test_the_build_is_the_one_that_is_tested(shell):
    shell.type('command -v dpctl\r')
    shell.wait_for(f'^{os.path.join(os.path.abspath(build_directory()), "utils/dpctl/dpctl")}')
