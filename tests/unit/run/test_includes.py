# SPDX-License-Identifier: Apache-2.0
"""Each room's include path: what it may include compiles, and nothing else does.

    test_includes.py BUILD

For every two rooms a file of one line, which includes a header of the second, is compiled as the
first one's files are (BUILD/compile_commands.json).  Who may use whom is said in scripts/structure.
"""
import concurrent.futures
import glob
import json
import os
import shlex
import subprocess
import sys
import tempfile
import unittest

from support import script
from support.script import TOP

structure = script.load('scripts/structure')
BUILD = os.path.realpath(sys.argv.pop()) if len(sys.argv) > 1 else 'build'


def public_header(room):
    """One of the room's public headers, as others write it, or None"""
    include = os.path.join(TOP, room, 'include')
    headers = sorted(glob.glob(os.path.join(glob.escape(include), '**/*.h'), recursive=True))
    return os.path.relpath(headers[0], include) if headers else None


def private_header(room):
    headers = sorted(glob.glob(os.path.join(glob.escape(os.path.join(TOP, room)), '*.h')))
    return os.path.basename(headers[0]) if headers else None


class TestIncludes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        files = structure.c_files(TOP)
        cls.rooms = structure.room_directories(TOP, files)
        cls.compilers = {}
        with open(os.path.join(BUILD, 'compile_commands.json'), encoding='utf-8') as f:
            for command in json.load(f):
                source = os.path.relpath(os.path.join(BUILD, command['file']), TOP)
                room = structure.room_of(source, cls.rooms)
                if room and not command['output'].startswith('tests/'):
                    cls.compilers.setdefault(room, cls.checks_only(command))

    @staticmethod
    def checks_only(command):
        """The compiler's command without its files: it reads stdin and writes nothing"""
        words = iter(shlex.split(command['command']))
        kept = []
        for word in words:
            if word in ('-o', '-MQ', '-MF', '-c'):
                next(words)
            elif word != '-MD' and not word.endswith('ccache'):
                kept.append(word)
        return kept + ['-fsyntax-only', '-x', 'c', '-']

    def compiles(self, room, header):
        # Not in the room's own directory: "x.h" is looked for beside the file that includes it.
        with tempfile.TemporaryDirectory() as empty:
            command = ['-I' + os.path.join(BUILD, word[2:]) if word.startswith('-I') else word
                       for word in self.compilers[room]]
            done = subprocess.run(command, input=f'#include "{header}"\n', text=True, cwd=empty,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode and f'{header}: No such file' not in done.stdout \
                and f"'{header}' file not found" not in done.stdout:
            raise AssertionError(f'{room}, #include "{header}":\n{done.stdout}')
        return done.returncode == 0

    def test_every_room_has_a_rule(self):
        self.assertEqual(sorted(self.rooms), sorted(structure.ROOMS))
        self.assertEqual(sorted(self.compilers), sorted(structure.ROOMS))

    def test_every_pair(self):
        pairs = []      # (room, header, may it)
        for room in self.compilers:
            for other in self.rooms:
                public, private = public_header(other), private_header(other)
                if public:
                    may = other == room or other in structure.ROOMS.get(room, ())
                    pairs.append((room, public, may))
                if private and other != room:
                    pairs.append((room, private, False))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda pair: self.compiles(*pair[:2]), pairs))
        wrong = [f'{room} {"includes" if did else "cannot include"} {header}'
                 for (room, header, may), did in zip(pairs, results) if did != may]
        self.assertEqual(wrong, [])
        self.assertGreater(len(pairs), 100)


if __name__ == '__main__':
    unittest.main()
