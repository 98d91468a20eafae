# SPDX-License-Identifier: Apache-2.0
"""The policies that were in force, in the state directory: the last ones, whole, profiles included."""
from __future__ import annotations

import json
import os
import re
import time
from typing import Any, Dict, List, NamedTuple, Optional

from ..jsonfile import write
from ..yamlfile import Wrong
from .policy import Policy, parse_policy

MOST_KEPT = 10


class Kept(NamedTuple):
    number: int                 # of the file, one more each time
    at: float
    revision: int
    digest: str
    row: Dict[str, Any]
    path: str

    def policy(self) -> Policy:
        """Raises Wrong."""
        try:
            files: Dict[str, str] = self.row['files']
            made = parse_policy(self.row['text'], self.row['file'], lambda name: files[name], self.revision)
        except (KeyError, TypeError) as error:
            raise no_revision(self.path, error) from error
        made.revision = self.revision
        return made


def no_revision(path: str, error: Exception) -> Wrong:
    return Wrong(path, 0, f'it is no revision of ours ({error!r}): delete it')


class Revisions:
    """The newest is the one in force."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        os.makedirs(directory, mode=0o700, exist_ok=True)

    def _numbers(self) -> List[int]:
        found = [re.fullmatch(r'(\d{1,9})\.json', name) for name in os.listdir(self.directory)]
        return sorted(int(match[1]) for match in found if match)

    def all(self) -> List[Kept]:
        """The oldest first.  OSError, or Wrong."""
        return [self._load(number) for number in self._numbers()]

    def last(self) -> Optional[Kept]:
        numbers = self._numbers()
        return self._load(numbers[-1]) if numbers else None

    def _load(self, number: int) -> Kept:
        path = os.path.join(self.directory, f'{number}.json')
        try:
            with open(path, encoding='utf-8') as f:
                row = json.load(f)
            return Kept(number, float(row['at']), int(row['revision']), str(row['digest']), row, path)
        except (KeyError, TypeError, ValueError) as error:
            raise no_revision(path, error) from error

    def keep(self, policy: Policy) -> None:
        """Unless it is the last one."""
        last = self.last()
        if last and (last.digest, last.revision) == (policy.digest, policy.revision):
            return
        number = ([0] + self._numbers())[-1] + 1
        files = {p.shown: p.text for p in policy.profiles.values()}
        write(os.path.join(self.directory, f'{number}.json'), {
            'at': time.time(), 'revision': policy.revision, 'digest': policy.digest,
            'file': policy.file, 'text': policy.text, 'files': files})
        for old in self._numbers()[:-MOST_KEPT]:
            os.unlink(os.path.join(self.directory, f'{old}.json'))
