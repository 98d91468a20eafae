# SPDX-License-Identifier: Apache-2.0
"""How tests/run counts: what ends badly is not passed over, what was not tested is said."""
import os
import subprocess
import sys
import tempfile
import unittest

SUPPORT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support')

MESON = '''\
 1/5 ofqos:unit / parse            OK              0.02s
 2/5 ofqos:unit / qos-kernel       SKIP            0.03s   exit status 77
 3/5 ofqos:fuzz / fuzz-text        FAIL            0.03s   exit status 1
 4/5 ofqos:unit / meters           TIMEOUT       120.01s   killed by signal 15 SIGTERM
 5/5 ofqos:unit / rig              ERROR           0.01s   exit status 99

Ok:                 1
Expected Fail:      0
Fail:               2
Unexpected Pass:    0
Skipped:            1
Timeout:            1
'''

JUNIT = '''<testsuites><testsuite>
<testcase classname="test_a" name="test_plain"/>
<testcase classname="test_a" name="test_ets[1]"><skipped message="sch_ets is not in this kernel"/>
</testcase>
<testcase classname="test_a" name="test_ets[2]"><skipped message="sch_ets is not in this kernel"/>
</testcase>
<testcase classname="test_a" name="test_sfq"><skipped message="sch_sfq is not in this kernel"/>
</testcase>
<testcase classname="test_a" name="test_wrong"><failure message="no"/></testcase>
</testsuite></testsuites>
'''
KERNEL = '''<testsuites><testsuite>
<testcase classname="test_a" name="test_ets[1]"><skipped message="sch_ets is not in this kernel"/>
</testcase>
<testcase classname="test_a" name="test_ets[2]"><skipped message="sch_ets is not in this kernel"/>
</testcase>
<testcase classname="test_a" name="test_sfq"/>
</testsuite></testsuites>
'''

TESTLOG = '''\
Log of Meson test suite
=================================== 1/3 ===================================
test:         ofqos:unit / qos-kernel
result:       exit status 77
command:      build/test-qos-kernel
---------------------------------- stdout ---------------------------------
skipped: this kernel has no HTB
===========================================================================
=================================== 2/3 ===================================
test:         ofqos:unit / stream-stream
result:       exit status 0
---------------------------------- stdout ---------------------------------
[       OK ] tcp
skipped: no emulated SO_ERROR
===========================================================================
=================================== 3/3 ===================================
test:         ofqos:unit / mute
result:       exit status 77
===========================================================================
'''


class Results(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.directory.cleanup()

    def write(self, name, text):
        path = os.path.join(self.directory.name, name)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        return path

    def shell(self, script, *words):
        done = subprocess.run(
            ['bash', '-uc', f'results=$1; . {SUPPORT}/sums.sh; shift; {script}', 'sums',
             self.directory.name, *words], text=True, stdout=subprocess.PIPE, check=True)
        return done.stdout.strip()


class TestSums(Results):
    def sums(self, function, text, *words):
        log = self.write('log', text)
        return [int(n) for n in self.shell(f'{function} "$@"; echo $ok $bad ${{skip:-0}}', log,
                                           *words).split()]

    def test_meson(self):
        self.assertEqual(self.sums('meson_sums', MESON, '3'), [1, 3, 1])

    def test_meson_that_ended_before_its_tests(self):
        said = 'ERROR: No such build data file\n'
        self.assertEqual(self.sums('meson_sums', said, '1'), [0, 1, 0])

    def test_pytest(self):
        line = '=== 1 failed, 20 passed, 3 skipped, 2 errors in 12.34s (0:00:12) ===\n'
        self.assertEqual(self.sums('pytest_sums', line, '1'), [20, 3, 3])
        self.assertEqual(self.sums('pytest_sums', '== 4 deselected in 0.1s ==\n', '5'), [0, 0, 0])

    def test_pytest_that_did_not_end(self):
        crashed = 'testkernel/uml: the test kernel ended before the command did\n'
        self.assertEqual(self.sums('pytest_sums', crashed, '125'), [0, 1, 0])
        self.assertEqual(self.sums('pytest_sums', '== 7 passed in 0.1s ==\n', '124'), [7, 1, 0])

    def test_a_c_test_that_fails_once_has_failed(self):
        """meson stands for one whose test would pass when run a second time."""
        os.makedirs(os.path.join(self.directory.name, 'build/meson-logs'))
        for name in ('build/meson-logs/testlog.txt', 'calls'):
            self.write(name, '')
        self.write('failed', ' 1/1 ofqos:unit / x FAIL 0.1s exit status 1\n\nOk: 0\nFail: 1\n')
        said = self.shell(f'''. {SUPPORT}/steps.sh; cd "$results"
            meson() {{ echo called >>calls; [ "$(wc -l <calls)" = 1 ] || {{ echo "Ok: 1"; return; }}; cat failed; return 1; }}
            c_tests build >/dev/null; echo "$passed $failed $(wc -l <calls)"''')
        self.assertEqual(said, '0 1 1')

    def test_a_black_box_test_that_fails_has_failed(self):
        log = self.write('log', '=== 1 failed, 20 passed, 3 skipped in 12.34s ===\n')
        self.assertEqual(self.shell('pytest_count x 1 "$1"; echo "$passed $failed"', log), '20 1')


class TestUntested(Results):
    def report(self):
        done = subprocess.run([sys.executable, f'{SUPPORT}/untested.py', self.directory.name],
                              text=True, stdout=subprocess.PIPE, check=True)
        with open(os.path.join(self.directory.name, 'untested'), encoding='ascii') as f:
            return [line.strip() for line in done.stdout.splitlines()], int(f.read())

    def test_nothing(self):
        self.assertEqual(self.report(), (['nothing'], 0))

    def test_what_the_test_kernel_passed_was_tested(self):
        self.write('black-box, this kernel.xml', JUNIT)
        self.write('kernel.xml', KERNEL)
        self.assertEqual(self.report(), (['2 tests: sch_ets is in neither kernel'], 2))

    def test_without_a_test_kernel(self):
        self.write('black-box, this kernel.xml', JUNIT)
        self.write('kernel.xml', KERNEL[:100])          # it stopped while that was written
        lines, number = self.report()
        self.assertEqual(lines, ['2 tests: sch_ets is not in this kernel',
                                 '1 test:  sch_sfq is not in this kernel'])
        self.assertEqual(number, 3)

    def test_c_tests(self):
        self.write('testlog-build-asan.txt', TESTLOG)
        self.write('testlog-build-release.txt', TESTLOG)
        self.write('testlog-build-mips.txt', TESTLOG)
        self.write('again', 'test: qos-kernel\nskipped: this kernel has no ETS\n')
        lines, number = self.report()
        self.assertEqual(lines, ['1 test:  mute did not say why',
                                 '1 test:  mute did not say why (MIPS)',
                                 '1 test:  no emulated SO_ERROR',
                                 '1 test:  no emulated SO_ERROR (MIPS)',
                                 '1 test:  this kernel has no ETS',
                                 '1 test:  this kernel has no HTB (MIPS)'])
        self.assertEqual(number, 6)

    def test_a_c_test_that_the_test_kernel_passed_whole(self):
        self.write('testlog-build-asan.txt', TESTLOG)
        self.write('again', 'test: qos-kernel\n[ OK ] all\ntest: stream-stream\ntest: mute\n')
        self.assertEqual(self.report(), (['nothing'], 0))

    def test_what_was_left_out(self):
        self.shell('left_out "C tests on MIPS" 1 "there is no compiler"')
        self.assertEqual(self.report()[0], ['1 test:  C tests on MIPS: there is no compiler'])


if __name__ == '__main__':
    unittest.main()
