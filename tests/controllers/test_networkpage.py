# SPDX-License-Identifier: Apache-2.0
"""docs/how-to/network.md: its policy file is right, its commands have options that there are.  What dpctl does there is
in tests/netns/test_recipes.py, its lab in tests/mininet/test_lab.py."""
import pathlib
import re
import shlex
import sys

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / 'controllers/python'))

from ofqos.network import cli  # noqa: E402
from ofqos.network.policy import parse_policy  # noqa: E402

PAGE = (REPOSITORY / 'docs/how-to/network.md').read_text(encoding='utf-8')


def commands(name):
    return [shlex.split(line, comments=True)[1:] for line in re.findall(rf'^    (?:sudo )?({name} .*)$', PAGE, re.M)]


def block(title):
    """The first indented text of a section"""
    section = PAGE.split(f'\n## {title}\n', 1)[1]
    return re.search(r'(?:^(?:    .*)?\n)+', section[section.index('\n    ') + 1:], re.M)[0]


@pytest.mark.parametrize('words', commands('ofqos-network'), ids=' '.join)
def test_commands(words):
    cli.parser().parse_args(words)


def test_policy():
    office = (REPOSITORY / 'docs/examples/office.qos').read_text(encoding='utf-8')
    policy = parse_policy(block('The policy file'), 'network.md', {'office.qos': office}.__getitem__, 1)
    assert policy.switches and policy.maps and policy.profiles


def test_map_beside_faucet():
    line = next(line for line in PAGE.splitlines() if 'beside: yes' in line)
    text = f'switches: [{{id: 1}}]\nmaps:\n{line[4:]}\napply: [{{to: all, map: classes}}]\n'
    policy = parse_policy(text, 'network.md', str, 1)
    assert policy.maps['classes'] == ('queue=10,dscp=ef', 'queue=20,dscp=af21', 'then=goto:1', 'table=0', 'beside')
