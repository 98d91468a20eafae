# SPDX-License-Identifier: Apache-2.0
"""Who may do what (ofqos.users, docs/how-to/users.md), and the log of who did it (ofqos.journal).  Needs no root."""
import asyncio
import errno
import json
import os
import sys

import pytest

from support.app import PACKAGE

sys.path.append(PACKAGE)
from ofqos import journal, users  # noqa: E402
from ofqos.guard import Guard  # noqa: E402

pytest.importorskip('yaml', reason='PyYAML is not installed (Debian: python3-yaml)')

TOKEN, DIGEST = users.made()


def written(path, text):
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


# --------------------------------------------------------------------------------------- users

def test_a_token_a_line(tmp_path):
    """The simple form, as files of 0.2.0 have it"""
    found = users.read_users(written(tmp_path / 'u', 'a-token-that-changes\nread a-token-that-reads bob\n'))
    assert [(u.name, sorted(u.rights), u.switches) for u in found] == [
        ('', ['administer', 'policy', 'rates', 'see'], None), ('bob', ['see'], None)]
    assert found[0].tokens == {users.digest('a-token-that-changes')}


def test_named_users(tmp_path):
    alice, bob, carol = users.read_users(written(tmp_path / 'u', f'''
alice:
  token: {DIGEST}
  may: [rates, policy, administer]
bob:
  certificate: [bob.example, sha256:{"0" * 64}]
  may: see
carol:
  token: [{DIGEST}, {users.made()[1]}]
  may: rates
  switches: [edge, 0000000000000001]
'''))
    assert alice.rights == users.ALL and alice.switches is None and alice.tokens == {users.digest(TOKEN)}
    assert bob.rights == {'see'} and bob.certificates == {'bob.example', 'sha256:' + '0' * 64} and not bob.tokens
    assert carol.rights == {'see', 'rates'} and carol.switches == {'edge', '0000000000000001'} and len(carol.tokens) == 2


@pytest.mark.parametrize('text, line, why', [
    ('alice:\n  may: see\n', 2, 'a token or a certificate is missing'),
    ('alice:\n  token: my-secret-token\n  may: see\n', 2, 'sha256: and 64 digits is'),
    ('alice:\n  token: DIGEST\n', 2, 'may is missing'),
    ('alice:\n  token: DIGEST\n  may: everything\n', 3, 'see or rates or policy or administer is'),
    ('alice:\n  token: DIGEST\n  may: see\n  tokn: x\n', 4, 'did you mean token?'),
    ('alice:\n  token: DIGEST\n  may: see\nalice:\n  may: see\n', 4, 'given twice')])
def test_wrong_files(tmp_path, text, line, why):
    path = written(tmp_path / 'u', text.replace('DIGEST', DIGEST))
    with pytest.raises(ValueError) as e:
        users.read_users(path)
    assert f'{path}:{line}: ' in str(e.value) and why in str(e.value)


def test_files_that_others_may_read(tmp_path):
    path = written(tmp_path / 'u', 'a-token-that-changes\n')
    os.chmod(path, 0o640)
    with pytest.raises(ValueError, match='chmod 600'):
        users.read_users(path)


def test_a_guard_follows_its_file(tmp_path):
    """A user whose rights change signs in again; one that is taken out is out."""
    path = written(tmp_path / 'u', f'alice:\n  token: {DIGEST}\n  certificate: alice.example\n  may: rates\n')
    guard = Guard(path)
    alice, _ = guard.check(TOKEN, 'a')
    name, _ = guard.begin(alice)
    assert guard.session(name) and guard.bearer(TOKEN, 'a')[0] is alice and guard.bearer(TOKEN + 'x', 'a')[0] is None
    said = {'subject': ((('countryName', 'XX'),), (('commonName', 'alice.example'),))}
    assert guard.certified(b'der', said) == alice and guard.certified(None, said) is None
    assert guard.certified(b'der', {'subject': ((('commonName', 'bob.example'),),)}) is None and guard.certified(b'der', {}) is None
    written(tmp_path / 'u', f'alice:\n  token: {DIGEST}\n  may: [see, administer]\n')
    assert guard.session(name) is None and not guard.bearer(TOKEN, 'a')[0].may(users.RATES)
    written(tmp_path / 'u', 'nonsense\n')
    assert guard.users() == [] and guard.bearer(TOKEN, 'a')[0] is None


# ----------------------------------------------------------------------------------------- log

async def change(log, fails=False, **what):
    async with journal.logged(log, user='alice', action='rate', **what):
        if fails:
            raise ValueError('the switch refuses')


def test_a_log(tmp_path):
    path = str(tmp_path / 'log')
    log = journal.Journal(path)
    asyncio.run(change(log, what={'rate': '5mbit'}))
    with pytest.raises(ValueError):
        asyncio.run(change(log, fails=True))
    with open(path, 'a') as f:
        f.write('{"at": 1, "id": "cut')                 # the process ended there
    asyncio.run(change(log))
    log.begin(user='bob')
    found = journal.read(path)
    assert [(f['user'], f['outcome']) for f in found] == [
        ('alice', 'done'), ('alice', 'not done: the switch refuses'), ('alice', 'done'), ('bob', 'not known')]
    assert found[0]['what'] == {'rate': '5mbit'} and os.stat(path).st_mode & 0o077 == 0
    asyncio.run(change(None))                           # without a log


def test_a_log_is_bounded(tmp_path):
    path = str(tmp_path / 'log')
    log = journal.Journal(path, 8000)
    for n in range(200):
        asyncio.run(change(log, number=n))
    assert os.path.getsize(path) + os.path.getsize(path + '.1') <= 8000
    numbers = [f['number'] for f in journal.read(path) if 'number' in f]
    assert numbers == list(range(numbers[0], 200)) and len(numbers) > 15


def test_the_end_of_a_log(tmp_path):
    """Of a large file only its end is read; a line that this cuts is left out."""
    path = str(tmp_path / 'log')
    log = journal.Journal(path)
    for n in range(50):
        asyncio.run(change(log, number=n))
    numbers = [f['number'] for f in journal.read(path, 2000) if 'number' in f]
    assert numbers == list(range(numbers[0], 50)) and 2 < len(numbers) < 25


def test_a_change_with_a_large_body(tmp_path):
    """It was cut in the middle of its JSON, and so was not in the log at all."""
    path = str(tmp_path / 'log')
    log = journal.Journal(path)
    for text in 'x' * 70_000, 'é' * 65_000, '\ud800' * 10, 'y' * 600_000:
        asyncio.run(change(log, what={'policy': text}))
    found = journal.read(path)
    assert [f['outcome'] for f in found] == ['done'] * 4
    assert [len(f['what'].get('policy', '')) for f in found[:3]] == [70_000, 65_000, 10]
    assert found[3]['what']['bytes'] > 600_000 and len(found[3]['what']['sha256']) == 64


def test_what_cant_be_logged_isnt_done(tmp_path, monkeypatch):
    path, done = str(tmp_path / 'log'), []
    log = journal.Journal(path)

    async def work():
        async with journal.logged(log, user='alice'):
            done.append(1)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with monkeypatch.context() as m:
        m.setattr(os, 'write', full)
        with pytest.raises(journal.NotLogged, match='No space left on device'):
            asyncio.run(work())
    assert not done and journal.read(path) == []
    asyncio.run(work())
    assert done and [f['outcome'] for f in journal.read(path)] == ['done']
    assert all(json.loads(line) for line in open(path))
