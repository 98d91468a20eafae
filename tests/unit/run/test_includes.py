# SPDX-License-Identifier: Apache-2.0
"""Each room's include path: what it may include compiles, and nothing else does.

    test_includes.py BUILD

For each room a file, which asks for a public header of every other one, is compiled as the room's own files are
(BUILD/compile_commands.json).  Who may use whom is said in scripts/structure.
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


def private_headers(rooms):
    """{room: its headers outside include/}"""
    return {room: sorted(os.path.basename(p) for p in
                         glob.glob(os.path.join(glob.escape(os.path.join(TOP, room)), '*.h')))
            for room in rooms}


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

    def compile(self, room, text):
        """What the compiler says of the text in a file of the room; '' when nothing"""
        # Not in the room's own directory: "x.h" is looked for beside the file that includes it.
        with tempfile.TemporaryDirectory() as empty:
            command = ['-I' + os.path.join(BUILD, word[2:]) if word.startswith('-I') else word
                       for word in self.compilers[room]]
            done = subprocess.run(command, input=text, text=True, cwd=empty,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.stdout if done.returncode else ''

    def test_every_room_has_a_rule(self):
        self.assertEqual(sorted(self.rooms), sorted(structure.ROOMS))
        self.assertEqual(sorted(self.compilers), sorted(structure.ROOMS))

    def test_every_pair(self):
        """A file a room: what is in the way of the compiler, and what compiles.  The preprocessor answers for all at once;
        each by itself would take 2,400 compilers."""
        headers = {other: header for other in self.rooms if (header := public_header(other))}

        def said(room):
            may = [headers[other] for other in headers if other == room or other in structure.ROOMS.get(room, ())]
            text = ''.join(f'#if {"!" * (header in may)}__has_include(<{header}>)\n'
                           f'#error {"cannot include" if header in may else "includes"} {header}\n#endif\n'
                           for header in headers.values())
            return room, self.compile(room, text + ''.join(f'#include <{header}>\n' for header in may))
        self.assertEqual(self.of_all(said, self.compilers), {})
        self.assertGreater(len(self.compilers) * len(headers), 100)

    def test_a_header_needs_no_other_before_it(self):
        def said(room):
            return room, self.compile(room, f'#include <{public_header(room)}>\n')
        self.assertEqual(self.of_all(said, [room for room in self.compilers if public_header(room)]), {})

    @staticmethod
    def of_all(said, rooms):
        """{room: what is wrong}"""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return {room: text for room, text in pool.map(said, rooms) if text}

    def test_private_headers(self):
        """No room has another's on its path: these lines compile where there is no such file."""
        private = private_headers(self.rooms)
        for room in self.compilers:
            own = private[room]
            others = {h for other in self.rooms if other != room for h in private[other]
                      if h not in own and not os.path.exists('/usr/include/' + h)}
            text = ''.join(f'#if __has_include("{h}")\n#error {h}\n#endif\n' for h in sorted(others))
            self.assertEqual(self.compile(room, text + 'int nothing;\n'), '')


if __name__ == '__main__':
    unittest.main()
