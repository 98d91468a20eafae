# SPDX-License-Identifier: Apache-2.0
"""Walks: what README, tutorials and docs/how-to/evaluate.md tell people to type, as they stand, on a machine of their own;
a line that fails, or does not show what the page shows, fails by its name.  Prints the time of each.

On a bare Debian, with the installation before them: .ci/packages walks."""
import os
import re
import shutil
import subprocess

import pytest

from support import walk
from support.topo import REPOSITORY
from support.walk import Failed, Step, Walker, installed, machine, received, steps

needs_iperf3 = pytest.mark.skipif(not shutil.which('iperf3'), reason='iperf3 is not installed (scripts/install-deps test)')
EVALUATE = 'docs/how-to/evaluate.md'
PARTS = re.findall(r'<!-- run: (\w+) -->', walk.read(EVALUATE))
# Another build, or other ways of the tests, that somebody has chosen are not the page's.
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith(('OFQOS', 'DPCTL', 'PYTEST'))}


def walker(before='', network=True):
    return Walker(machine(network), walk.MACHINE + installed() + walk.OWN_TMP + before)


def here(page):
    """Its steps, without the installation of programs that this machine has"""
    return [step for step in steps(page) if not step.command.startswith('apt-get ')]


def walked(page, before='', network=True, lab=()):
    with walker(before, network) as someone:
        said = someone.follow(list(lab) + here(page))
        assert someone.type('ip netns').strip() == '', 'a namespace is left'
        walk.took(page, someone)
    return said


def last(said, beginning, before=''):
    """What the last such command said, before another one"""
    until = next((i for i, (command, _) in enumerate(said) if before and command.startswith(before)), len(said))
    return [text for command, text in said[:until] if command.startswith(beginning)][-1]


# ------------------------------------------------------------------------------ operator: to a shaped line

@needs_iperf3
def test_the_lines_of_the_readme():
    """On two interfaces with a host behind each; traffic shows that the queue holds"""
    lines = steps('README.md', 'shape')
    watch = lines[-1]
    assert watch.command == 'sudo dpctl qos-watch'
    with walker() as operator:
        operator.type(*walk.INTERFACES)
        operator.follow(lines[:-1])
        # The live view is looked at while the traffic runs.
        operator.follow([Step(watch.where, walk.SERVER), Step(watch.where, '{ ' + walk.CLIENT + ' > sent & }')])
        (_, seen), = operator.follow([watch], until_stopped=[watch.command])
        sent = operator.type('wait; cat sent')
        walk.took('README.md', operator)
    assert 0 < received(sent) < 10, sent     # a busy machine sends less, and none more
    assert re.search(r'^ +class 10 +[\d.]+M +6\.00M/10\.0M ', seen, re.M), seen


# ------------------------------------------------------------------------------ student

@needs_iperf3
def test_first_queue():
    said = walked('docs/tutorials/first-queue.md')
    assert 1 < received(last(said, 'ip netns exec one iperf3')) < 5       # a busy machine sends less, and none more


@needs_iperf3
def test_first_application():
    """os-ken comes from PyPI"""
    lab = [step for step in here('docs/tutorials/first-queue.md') if step.command.startswith(('ip netns add', 'ip link', 'ip -n'))]
    assert len(lab) == 11
    try:
        said = walked('docs/tutorials/first-application.md', f'export OFQOS={REPOSITORY}\n', network=False, lab=lab)
    except Failed as e:
        if re.search('No matching distribution|No module named ensurepip|ensurepip is not|Connection|ProxyError', str(e)):
            pytest.skip(f'needs PyPI and python3-venv: {str(e).splitlines()[-1]}')
        raise
    assert 1 < received(last(said, 'ip netns exec one iperf3')) < 10


@needs_iperf3
@pytest.mark.skipif(not shutil.which('nft'), reason='nft is not installed (scripts/install-deps test)')
def test_home_line():
    said = walked('docs/tutorials/home-line.md')
    full = next(text for command, text in said if command == 'ip netns exec home ping -c 5 -i 0.4 10.0.0.2')
    assert '100% packet loss' not in full       # a full buffer drops some
    rates = [received(text) for command, text in said if command.startswith('ip netns exec home iperf3 --client 203')]
    without, up, down, own_up, own_down = rates
    assert without < 0.7 < min(up, own_up) < 3 < min(down, own_down) < 11, rates     # each is sure of its part


# ------------------------------------------------------------------------------ engineer: to a judged evaluation

def test_what_the_evaluation_names_is_there():
    assert PARTS == ['build', 'demo', 'tests', 'bench', 'security']
    for part in PARTS:
        for step in steps(EVALUATE, part):
            program, *words = step.command.removeprefix('sudo ').split()
            if program.startswith(('scripts/', 'tests/', 'measure/')):
                said = subprocess.run([os.path.join(REPOSITORY, program), '--help'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, timeout=60, check=False).stdout
                for word in words:
                    if word.startswith('--') or part == 'bench' and re.fullmatch(r'[a-z]+\d*m?', word):
                        assert word in said, f'{step.where}: {program} has no {word}'


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists(os.path.join(REPOSITORY, '.git')), reason='the page begins with a clone, and this is none')
@pytest.mark.skipif(not shutil.which('meson'), reason='meson is not installed (scripts/install-deps build)')
def test_the_evaluation(tmp_path):
    """One test, because each part needs what the one before has made"""
    clone = tmp_path / 'ofqos'
    subprocess.run(['git', 'clone', '--quiet', '--depth=1', 'file://' + os.path.realpath(REPOSITORY), clone], check=True)
    with Walker(machine(), walk.MACHINE + f'cd {clone}\n', env=ENVIRONMENT) as engineer:
        for part in PARTS:
            engineer.follow(steps(EVALUATE, part), seconds=3600)
            walk.took(f'{EVALUATE}, to the end of {part}', engineer)


# ------------------------------------------------------------------------------ how a walk reads a page

PAGE = '''# A page

Write this to `x.qos`:

```
htb class=0
```

    cat x.qos \\
        | tail -n 1

```text
htb ...
```

    sleep 0.1 &
'''


def a_page(monkeypatch, text):
    monkeypatch.setattr(walk, 'read', lambda _: text)
    return steps('page.md')


def test_steps_of_a_page(monkeypatch, tmp_path):
    found = a_page(monkeypatch, PAGE)
    assert [(s.where, s.shows) for s in found] == [('page.md:7', ()), ('page.md:10', ('htb.*',)), ('page.md:16', ())]
    with Walker([], f'cd {tmp_path}') as reader:
        assert reader.follow(found)[1][1].strip() == 'htb class=0'


@pytest.mark.parametrize('page, words', [
    ('    true\n    false\n', ['page.md:2: false', 'exit status 1']),
    ('    echo one two\n\n```text\none 2\n```\n', ['page.md:1: echo one two', 'does not show']),
    ('    no-such-program --help\n', ['page.md:1', '127', 'not found']),
    ('    exit 0\n', ['page.md:1', 'ends the shell'])], ids=['status', 'shown', 'missing', 'ended'])
def test_a_line_that_no_longer_works(monkeypatch, page, words):
    monkeypatch.setattr(walk, 'PATIENCE', 0.2)
    with pytest.raises(Failed) as told, Walker([]) as reader:
        reader.follow(a_page(monkeypatch, page))
    for word in words:
        assert word in str(told.value)


@pytest.mark.parametrize('shown, said', [('time=0.08 ms', 'time=12 ms'), ('a  b', 'a b'), ('2 ... x', '2  1000 x'), ('a.b', 'a.b')])
def test_what_is_shown(shown, said):
    assert walk.said_in_order([walk.pattern(shown)], said) is None


@pytest.mark.parametrize('shown, said', [('rate 5mbit', 'rate 6mbit'), ('a.b', 'axb'), ('one', 'two')])
def test_what_is_not(shown, said):
    assert walk.said_in_order([walk.pattern(shown)], said)
