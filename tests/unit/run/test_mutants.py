#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tests/mutants: the sources still have what each mutant replaces (to run them takes minutes: tests/run --all)"""
import os
import subprocess
import sys
import unittest

MUTANTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../mutants')


class Mutants(unittest.TestCase):
    def test_each_has_its_place(self):
        done = subprocess.run([sys.executable, '-B', MUTANTS, '--list'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == '__main__':
    unittest.main()
