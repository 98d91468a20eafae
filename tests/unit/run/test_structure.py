# SPDX-License-Identifier: Apache-2.0
"""scripts/structure finds what it is for, in a tree of two rooms made for the purpose."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from support import script

structure = script.load('scripts/structure')

LOW_H = 'int low_answer(void);\n'
LOW_C = '#include <low/low.h>\n#include "inside.h"\nint\nlow_answer(void)\n{\n    return 42;\n}\n'
HIGH_C = '#include <low/low.h>\nint\nmain(void)\n{\n    return low_answer();\n}\n'


class TestStructure(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        for name, value in (('ROOMS', {'low': [], 'high': ['low']}), ('LONGER', {}), ('CIRCLES', {}),
                            ('LIBRARIES', {r'pcap\.h': r'low/.*'})):
            patch = mock.patch.object(structure, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.write('low/include/low/low.h', LOW_H)
        self.write('low/inside.h', '')
        self.write('low/low.c', LOW_C)
        self.write('high/high.c', HIGH_C)

    def write(self, path, text):
        path = os.path.join(self.directory.name, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)

    def build(self, sources):
        """Of the room high these sources, and all of low"""
        self.write('meson.build', "project('p', 'c')\n"
                   f"static_library('high', {sources}, include_directories: 'low/include')\n"
                   "static_library('low', 'low/low.c', include_directories: 'low/include')\n")
        build = os.path.join(self.directory.name, 'build')
        for command in (['meson', 'setup', build, self.directory.name], ['ninja', '-C', build]):
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)

    def broken(self):
        """What the script says of the tree: the lines below "rules that do not hold" """
        said = []
        with mock.patch.object(sys, 'argv', ['structure', '--root', self.directory.name]), \
                mock.patch('builtins.print', lambda *words: said.append(' '.join(words))):
            status = structure.main()
        _, _, rules = '\n'.join(said).partition('rules that do not hold:\n')
        lines = [line.strip() for line in rules.splitlines()]
        self.assertEqual(status, 1 if lines else 0)
        return lines

    def test_nothing_wrong(self):
        self.assertEqual(self.broken(), [])

    def test_include_against_the_direction(self):
        self.write('high/include/high/high.h', '')
        self.write('low/low.c', '#include <high/high.h>\n')
        self.assertEqual(self.broken(),
                         ['direction: low/low.c includes "high/high.h": low may not use high'])

    def test_private_header(self):
        self.write('high/high.c', '#include "../low/inside.h"\n')
        self.assertEqual(self.broken(), ['direction: high/high.c includes "../low/inside.h", '
                                         'a private header of low'])

    def test_somebody_elses_library(self):
        self.write('high/high.c', '#include <pcap.h>\n')
        self.assertEqual(len(self.broken()), 1)
        self.write('high/high.c', '')
        self.write('low/low.c', '#include <pcap.h>\n')
        self.assertEqual(self.broken(), [])

    def test_room_without_a_row(self):
        self.write('low/cellar/include/cellar/wine.h', '')
        self.write('attic/box.c', '')
        self.assertEqual(self.broken(), ['room: attic has no row in ROOMS',
                                         'room: low/cellar has no row in ROOMS'])

    def test_row_without_a_room(self):
        with mock.patch.dict(structure.ROOMS, {'gone': []}):
            self.assertEqual(self.broken(), ['room: ROOMS names gone, which is not there'])

    def test_long_file(self):
        self.write('high/rows.c', '// row\n' * 601)
        self.assertEqual(self.broken(), ['file: high/rows.c has 601 lines'])
        with mock.patch.dict(structure.LONGER, {'high/rows.c': 'rows'}):
            self.assertEqual(self.broken(), [])
            self.write('high/rows.c', '// row\n')
            self.assertEqual(self.broken(), ['file: high/rows.c needs no exception any more'])

    def test_long_function(self):
        body = '    work();\n' * 57
        self.write('high/high.c', f'void\nhigh_long(int a,\n          int b)\n{{\n{body}}}\n')
        self.assertEqual(self.broken(), ['function: high/high.c:high_long has 61 lines'])

    def test_circle_of_headers(self):
        self.write('high/a.h', '#include "b.h"\n')
        self.write('high/b.h', '#include "a.h"\n')
        self.assertEqual(self.broken(), ['circle: high/a.h high/b.h include each other'])

    def test_circle_of_files(self):
        self.write('high/a.c', 'int b(void);\nint a(void) { return b(); }\n')
        self.write('high/b.c', 'int a(void);\nint b(void) { return a(); }\n')
        self.build("'high/a.c', 'high/b.c', 'high/high.c'")
        self.assertEqual(self.broken(), ['circle: 2 files of high call each other: a.c b.c'])
        with mock.patch.dict(structure.CIRCLES, {'high': 2}):
            self.assertEqual(self.broken(), [])

    def test_call_of_a_room_above(self):
        """A prototype of one's own is no way around the table."""
        self.write('low/a.c', 'int high_b(void);\nint a(void) { return high_b(); }\n')
        self.write('high/b.c', 'int high_b(void) { return 1; }\n')
        self.build("'low/a.c', 'high/b.c', 'high/high.c'")
        self.assertIn('direction: low/a.c calls high_b of high/b.c', self.broken())

    def test_large_room(self):
        for n in range(10):
            self.write(f'high/{n}.c', '// row\n' * 501)
        self.assertEqual([b.split(' lines')[0] for b in self.broken()], ['room: high has 5016'])
        with mock.patch.dict(structure.LONGER, {'high': 'rows'}):
            self.assertEqual(self.broken(), [])

    def test_function_that_nobody_calls(self):
        self.write('high/a.c', 'int\nunused(void)\n{\n    return 1;\n}\nint\nrow(void)\n{\n    return 2;\n}\n'
                   'int (*const rows[])(void) = {row};\n')
        self.build("'high/a.c', 'high/high.c'")
        self.assertEqual(self.broken(), ['unused: high/a.c:unused is called by no program'])
        with mock.patch.dict(structure.CALLED_BY_NOBODY, {'unused': 'a test'}):
            self.assertEqual(self.broken(), [])


class TestArchitecture(unittest.TestCase):
    """docs/development/architecture.md tells the truth about this tree, where a commit or two changes little."""
    def test_numbers(self):
        with open(os.path.join(script.TOP, 'docs/development/architecture.md'), encoding='utf-8') as f:
            rows = dict(re.findall(r'^\| ([a-z0-9, ]+) \|.* ([\d,]+) \|$', f.read(), re.M))
        files = structure.c_files(script.TOP)
        rooms = structure.room_directories(script.TOP, files)
        _, lines, _ = structure.sizes(script.TOP, files, rooms)
        totals = [sum(n for path, n in lines.items() if structure.room_of(path, rooms) == room) for room in rooms]
        for what, is_so in {'rooms': len(rooms), 'files': len(files), 'lines': sum(lines.values()),
                            'largest room, lines': max(totals), 'largest file, lines': max(lines.values())}.items():
            with self.subTest(what):
                self.assertAlmostEqual(int(rows[what].replace(',', '')), is_so, delta=0.03 * is_so)
        self.assertEqual(int(rows['rooms above 5,000 lines']), sum(n > structure.ROOM_LINES for n in totals))


if __name__ == '__main__':
    unittest.main()
