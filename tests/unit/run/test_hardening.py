# SPDX-License-Identifier: Apache-2.0
"""The programs have what makes a mistake in memory harder to use (docs/explanation/security.md).

    test_hardening.py fortified|plain PROGRAM...

readelf tells what the linker and the compiler made.
"""
import re
import shutil
import subprocess
import sys
import unittest


def output(*command):
    return subprocess.run(command, check=True, text=True, timeout=60, stdout=subprocess.PIPE).stdout


def readelf(path, *what):
    return output('readelf', '--wide', *what, path)


class Hardening(unittest.TestCase):
    def setUp(self):
        if not shutil.which('readelf'):
            print('skipped: there is no readelf (package binutils)')
            self.skipTest('there is no readelf')

    def test_is_loaded_anywhere(self):
        for path in PROGRAMS:
            self.assertRegex(readelf(path, '--file-header'), r'Type: +DYN', path)
            self.assertIn('PIE', readelf(path, '--dynamic'), path)

    def test_tables_of_addresses_are_read_only(self):
        for path in PROGRAMS:
            self.assertIn('GNU_RELRO', readelf(path, '--program-headers'), path)
            self.assertRegex(readelf(path, '--dynamic'), r'BIND_NOW|FLAGS.*NOW', path)

    def test_nothing_is_writable_and_executable(self):
        for path in PROGRAMS:
            headers = readelf(path, '--program-headers')
            self.assertRegex(headers, r'GNU_STACK.* RW +0', path)
            self.assertNotRegex(headers, r'LOAD .* RWE +0x', path)

    def test_stack_is_guarded(self):
        for path in PROGRAMS:
            self.assertIn('__stack_chk_fail', readelf(path, '--dyn-syms'), path)

    def test_control_flow_is_guarded(self):
        for path in PROGRAMS:
            machine = re.search(r'Machine: +(.*)', readelf(path, '--file-header')).group(1)
            if 'X86-64' not in machine and 'AArch64' not in machine:
                print(f'skipped: {machine} has no protection of indirect jumps')
                self.skipTest(machine)
            # The program's mark says nothing: the linker drops it as libc's start has none (Debian 12).
            code = output('objdump', '--disassemble=main', path)
            self.assertRegex(code, r'\b(endbr64|bti|paciasp)\b', path)

    def test_libc_checks_sizes(self):
        if HOW != 'fortified':
            print('skipped: this build is not fortified (a sanitizer does it, or it is not optimized)')
            self.skipTest('not fortified')
        for path in PROGRAMS:
            self.assertRegex(readelf(path, '--dyn-syms'), r'__(memcpy|snprintf|vsnprintf|strcpy)_chk', path)


HOW, PROGRAMS = sys.argv[1], sys.argv[2:]
del sys.argv[1:]
unittest.main()
