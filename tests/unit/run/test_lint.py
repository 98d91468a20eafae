#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/lint: what is no defect is silent, what a tool could not read is not, and nothing is done twice"""
import json
import os
import shlex
import subprocess
import sys
import tempfile
import unittest

LINT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../scripts/lint')
NULL = 'int read_null(void);\nint read_null(void)\n{\n    int *p = 0;\n    return *p;\n}\n'
CLEAN = 'int one(void);\nint one(void)\n{\n    return 1;\n}\n'


class Lint(unittest.TestCase):
    def setUp(self):
        self.build = self.enterContext(tempfile.TemporaryDirectory())

    def lint(self, source, *options):
        """(exit status, what it said) of one source"""
        path = os.path.join(self.build, 'a.c')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(source)
        with open(os.path.join(self.build, 'compile_commands.json'), 'w', encoding='utf-8') as f:
            json.dump([{'directory': self.build, 'file': path, 'output': 'a.o',
                        'command': shlex.join(['cc', '-o', 'a.o', '-c', path])}], f)
        done = subprocess.run([LINT, '--build', self.build, *options, path], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
        if done.returncode == 77:
            self.skipTest(done.stdout.strip())
        return done.returncode, done.stdout

    def test_each_tool_finds_and_is_content(self):
        for tool in 'clang-tidy', 'gcc', 'cppcheck':
            with self.subTest(tool):
                status, said = self.lint(NULL, '--only', tool)
                self.assertEqual(status, 1, said)
                self.assertIn('a.c:5: ', said)
                status, said = self.lint(CLEAN, '--only', tool)
                self.assertEqual(status, 0, said)
                self.assertIn('clean: no findings in 1 sources', said)

    def test_what_a_tool_cannot_read_is_a_finding(self):
        for tool in 'clang-tidy', 'gcc', 'cppcheck':
            for source in '#include "nowhere.h"\n' + CLEAN, CLEAN + '}\n':
                if tool == 'cppcheck' and 'nowhere' in source:
                    continue    # it is not given the libraries' headers
                with self.subTest(tool=tool, source=source):
                    status, said = self.lint(source, '--only', tool)
                    self.assertEqual(status, 1, said)

    def test_the_second_run_says_the_same_without_the_tool(self):
        for tool in 'clang-tidy', 'gcc':
            first = self.lint(NULL, '--only', tool)[1].splitlines()[:-1]
            directory = os.path.join(self.build, 'lint', tool)
            kept, = os.listdir(directory)
            with open(os.path.join(directory, kept), encoding='utf-8') as f:
                entry = json.load(f)
            entry['said'] = entry['said'].replace(':5:', ':7:')
            with open(os.path.join(directory, kept), 'w', encoding='utf-8') as f:
                json.dump(entry, f)
            again = self.lint(NULL, '--only', tool)[1].splitlines()[:-1]
            self.assertEqual(again, [line.replace(':5:', ':7:') for line in first])
            changed = self.lint('\n' + NULL, '--only', tool)[1]
            self.assertIn('a.c:6: ', changed)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]])
