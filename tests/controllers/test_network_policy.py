# SPDX-License-Identifier: Apache-2.0
"""ofqos-network's file: what is right, and what is said of what is wrong.  No switch is needed."""
import json
import os
import shutil
import subprocess
import sys

import pytest

from support.app import PACKAGE
from support.fakeswitch import run
from support.topo import REPOSITORY, binary, build_directory

yaml = pytest.importorskip('yaml', reason='PyYAML is not installed (Debian: python3-yaml)')
sys.path.append(PACKAGE)
from ofqos import yamlfile  # noqa: E402
from ofqos.network import nothing, policy  # noqa: E402
from ofqos.network.dpctl import Dpctl, NotRendered  # noqa: E402

needs_dpctl = pytest.mark.skipif(not build_directory(), reason='no build with dpctl found')
EXAMPLES = sorted(name for name in os.listdir(f'{REPOSITORY}/docs/examples') if name.endswith('.qos'))
GOOD = '''
revision: 7
on_drift: report
canary: {part: 10%, watch: 500ms}
profiles:
  uplink: {file: office.qos, values: {up: 20mbit, down: 90mbit}}
  small:
    lines:
      - set up=10mbit
      - htb class=0,rate=$up
      - htb class=10,rate=30%
maps:
  voice: {rules: ['queue=10,dscp=12'], then: normal}
switches:
  - {id: 1, name: edge1, labels: [edge, pilot]}
  - {id: 0010, labels: edge}
  - {id: 00000000000000ff, name: core}
apply:
  - to: edge
    ports: {1: uplink, eth3: {profile: small, values: {up: 5mbit}}, '5-6,8': small}
    map: voice
  - {to: [core], ports: {all: none}, map: none}
'''


def read(text, files=None):
    def opener(name):
        if files and name in files:
            return files[name]
        with open(f'{REPOSITORY}/docs/examples/{name}', encoding='utf-8') as f:
            return f.read()
    return policy.parse_policy(text, 'p.yaml', opener, 3)


def changed(old, new):
    assert old in GOOD
    return GOOD.replace(old, new)


def test_what_is_right():
    made = read(GOOD)
    assert (made.revision, made.on_drift, made.role) == (7, 'report', 'master')
    assert {s.name: (s.id, set(s.labels)) for s in made.switches.values()} == {
        'edge1': (1, {'edge', 'pilot'}), 's10': (0x10, {'edge'}), 'core': (0xff, set())}
    words = [command.words for command in made.commands[1]]
    assert words == [('qos-apply', 'FILE', 'port=1', 'down=90mbit', 'up=20mbit'),
                     ('qos-apply', 'FILE', 'port=eth3', 'up=5mbit'),
                     ('qos-apply', 'FILE', 'port=5-6,8'),
                     ('qos-map', 'replace', 'set=network', 'queue=10,dscp=12', 'then=normal')]
    assert made.commands[1] == made.commands[0x10]
    assert [command.words for command in made.commands[0xff]] == [
        ('qos-apply', 'FILE', 'port=all'), ('qos-map', 'del', 'set=network')]
    assert read(GOOD.replace('revision: 7', '')).revision == 3
    assert read(GOOD).digest == made.digest != read(GOOD + '#\n').digest


def test_who_gets_it_first():
    many = '\n'.join(f'  - {{id: {n:x}}}' for n in range(1, 41))
    made = read(f'canary: {{part: 10%}}\nswitches:\n{many}\napply: [{{to: all, ports: {{1: none}}}}]\n')
    first = made.first(list(made.switches))
    assert len(first) == 4 and first == made.first(sorted(made.switches, reverse=True))
    assert len(made.first([7])) == 1 and made.first([]) == []
    labelled = read(changed('{part: 10%, watch: 500ms}', '{label: pilot}'))
    assert labelled.first([1, 0x10]) == [1] and labelled.canary.watch == 30
    assert read(changed('canary: {part: 10%, watch: 500ms}', '')).first([1]) == []


WRONG = [
    ('revision: 7', 'revison: 7', "2: 'revison' is unknown: did you mean revision?"),
    ('revision: 7', 'revision: 0', 'p.yaml:2: revision: 0 is not right; a number from 1 to'),
    ('on_drift: report', 'on_drift: repair', "3: on_drift: 'repair' is not right; mend or report is"),
    ('{part: 10%, watch', '{part: 0%, watch', '4: canary.part: nothing is not right'),
    ('watch: 500ms', 'watch: long', "4: canary.watch: 'long' is not right; a time as 30s is"),
    ('{part: 10%, ', '{label: nobody, ', '4: canary.label: no switch has the label nobody'),
    ('office.qos', 'missing.qos', '6: profiles.uplink.file: missing.qos can\'t be read: No such file'),
    ('up: 20mbit', 'port: 20mbit', "profiles.uplink.values.port: 'port' is no variable"),
    ('up: 20mbit', 'up: 20mbit#x', 'a value as 20mbit is'),
    ("['queue=10,dscp=12']", "['dscp=12']", "13: maps.voice.rules[1]: 'dscp=12' is not right; a rule"),
    ('{id: 1, name', '{id: 1g, name', "15: switches[1].id: '1g' is not right; a datapath id is"),
    ('name: core', 'name: edge1', '17: switches[3]: edge1 is there already, in line 15'),
    ('id: 0010', 'id: 01', '16: switches[2]: 1 is there already, in line 15'),
    ('edge, pilot', 'edge, core', '15: core is a label here, and the name of the switch in line 17'),
    ('- to: edge', '- to: edg', '19: apply[1].to: no switch has the name or label edg'),
    ('1: uplink', '1: uplnk', '20: apply[1].ports.1: there is no profile uplnk'),
    ('eth3: {profile', '5000-x: {profile', "20: apply[1].ports.5000-x: '5000-x' is no port"),
    ("'5-6,8'", "'5-6,1'", 'p.yaml:20: port 1 of edge1 has a profile already, by line 20'),
    ('map: voice\n', 'map: vice\n', '21: apply[1].map: there is no map vice'),
    ('[core]', '[core, edge]', 'all ports of edge1, and single ones'),
    ('lines:', 'file: a.qos\n    lines:', '8: profiles.small: file or lines is needed'),
    ('switches:', 'switches: []\nother:', "unknown; there are revision, role"),
    ('map: voice', 'map: [voice', 'p.yaml:2'),
    ('revision: 7', 'revision: &a 7\nrole: *a', 'p.yaml:3: *a: aliases are not taken'),
    ('revision: 7', 'revision: 7\nrevision: 8', "'revision' is given twice, also in line 2"),
    ('revision: 7', 'revision: ' + '[' * 30 + ']' * 30, 'p.yaml:2: more than 12 levels'),
]


@pytest.mark.parametrize('old,new,said', WRONG)
def test_what_is_wrong_is_said_with_its_line(old, new, said):
    with pytest.raises(yamlfile.Wrong) as error:
        read(changed(old, new))
    assert said in str(error.value) and str(error.value).startswith('p.yaml:')


def test_bounds():
    for text in ('', '- 1', '3', 'switches: {}\napply: []', '\0', 'a: b: c', '{' * 10**5,
                 'switches: [{id: 1}]\napply: [{to: all, ports: {1: none}}]\n#' + 'x' * (8 << 20)):
        with pytest.raises(yamlfile.Wrong):
            read(text)


def test_two_files_of_one_name():
    text = changed('small:\n', 'other: {file: x/office.qos}\n  small:\n')
    with pytest.raises(yamlfile.Wrong, match='uplink and other are different files with the name office'):
        read(text, {'x/office.qos': 'none\n'})


@pytest.mark.parametrize('name', ['../secret', '{dir}/secret', 'below/../../secret', 'link', 'below/link/secret', '/etc/shadow'])
def test_only_the_policys_directory_is_read(name, tmp_path):
    """Nor is a word of another file shown, whether it is there or not."""
    mine = tmp_path / 'policies'
    (mine / 'below').mkdir(parents=True)
    (tmp_path / 'secret').write_text('root:$y$j9T$:19000\n')
    (mine / 'link').symlink_to(tmp_path / 'secret')
    (mine / 'below' / 'link').symlink_to(tmp_path)
    shutil.copy(f'{REPOSITORY}/docs/examples/office.qos', mine / 'below')
    path = mine / 'p.yaml'
    path.write_text(GOOD.replace('office.qos', name.format(dir=tmp_path)))
    with pytest.raises(yamlfile.Wrong, match='is in the policy\'s directory') as error:
        policy.load(str(path))
    assert 'root:' not in str(error.value)
    path.write_text(GOOD.replace('office.qos', 'below/office.qos'))
    assert policy.load(str(path)).profiles['uplink'].base == 'office.qos'


@needs_dpctl
def test_profiles_are_checked_by_dpctl():
    dpctl = Dpctl(binary('utils/dpctl/dpctl'))
    assert run(nothing.check(dpctl, read(GOOD))) == []
    wrong = run(nothing.check(dpctl, read(changed('rate=30%', 'rate=30%,cel=1mbit')
                                      .replace('up: 20mbit', 'uo: 20mbit'))))
    assert len(wrong) == 2 and all(line.startswith('p.yaml:20: ') for line in wrong)
    assert any('has no variable $uo' in line for line in wrong)
    assert any('the lines of profiles.small:3' in line and 'cel' in line for line in wrong)
    both = run(nothing.check(dpctl, read(changed('dscp=12', 'dscp=ef'))))
    assert len(both) == 1 and 'p.yaml:19: its map and that of line 20 are about the same packets' in both[0]


@needs_dpctl
@pytest.mark.parametrize('name', EXAMPLES)
def test_shipped_profiles(name):
    """Each is right, and a second look costs no dpctl."""
    dpctl = Dpctl(binary('utils/dpctl/dpctl'))
    made = read(f'profiles: {{x: {{file: {name}}}}}\nswitches: [{{id: 1}}]\n'
                'apply: [{to: all, ports: {1: x}}]\n')
    assert run(nothing.check(dpctl, made)) == [] and dpctl.runs == 1
    assert run(nothing.check(dpctl, made)) == [] and dpctl.runs == 1


@needs_dpctl
def test_a_dpctl_that_was_killed_is_asked_again(tmp_path, monkeypatch):
    """Or has hung, or says no end: what came of it says nothing of the policy, and is not remembered."""
    program, marker = tmp_path / 'dpctl', tmp_path / 'marker'
    program.write_text(f'#!/bin/sh\n[ -e {marker} ] && exec {binary("utils/dpctl/dpctl")} "$@"\n'
                       f'touch {marker}\neval "$WAY"\n')
    program.chmod(0o755)
    profile = policy.Profile('one.qos', 'htb class=0,rate=1mbit\n', (), 'one.qos')
    words = ('qos-apply', policy.FILE, 'port=1')
    for way, said in (('kill -9 $$', 'ended by signal 9'), ('exec sleep 60', 'neither asked nor ended'),
                      ('exec yes', 'said more than 10000 bytes'), ('yes | head -c 1000000; exec sleep 60', 'said more than 10000 bytes')):
        monkeypatch.setenv('WAY', way)
        marker.unlink(missing_ok=True)
        dpctl = Dpctl(str(program))
        with monkeypatch.context() as patch:
            patch.setattr('ofqos.network.dpctl._SECONDS', 0.5)
            patch.setattr('ofqos.network.dpctl._MOST_BUNDLE', 10000)
            with pytest.raises(NotRendered, match=said):
                run(dpctl.render(words, profile, nothing.Nothing(())))
        assert run(dpctl.render(words, profile, nothing.Nothing(()))).steps


@needs_dpctl
def test_command(tmp_path):
    def command(text, *words):
        path = tmp_path / 'p.yaml'
        path.write_text(text)
        shutil.copy(f'{REPOSITORY}/docs/examples/office.qos', tmp_path)
        return subprocess.run(
            [sys.executable, '-m', 'ofqos.network.cli', *words, 'check', str(path)], text=True, check=False,
            env=dict(os.environ, PYTHONPATH=PACKAGE, OFQOS_DPCTL=binary('utils/dpctl/dpctl')),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    good = command(GOOD)
    assert good.returncode == 0 and 'is right: revision 7, 3 switches' in good.stdout
    bad = command(changed('up: 5mbit', 'up: fast'), '--json')
    assert bad.returncode == 1
    found = json.loads(bad.stdout)
    assert not found['right'] and len(found['wrong']) == 1 and 'fast' in found['wrong'][0]
    missing = command(GOOD, '--dpctl', '/nowhere/dpctl')
    assert missing.returncode == 1 and "/nowhere/dpctl can't be started" in missing.stderr
