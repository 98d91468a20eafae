# SPDX-License-Identifier: Apache-2.0
"""tests/soak, ended before its time, still tells what it saw (tests/soaking/early.py)."""
import os
import signal
import subprocess
import sys
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUN = f'''
import subprocess, sys, time
sys.path.insert(0, {TESTS!r})
from soaking.early import apart

def run(early):
    load = subprocess.Popen(['sleep', '60'])
    print('runs', flush=True)
    end = time.monotonic() + 60
    while not early.by and time.monotonic() < end:
        time.sleep(0.01)
    print('ended by', early.by, 'beside', load.poll(), flush=True)
    load.kill()
    return 7

sys.exit(apart(run))
'''



class Ended(unittest.TestCase):
    def ended(self, number, send):
        with subprocess.Popen([sys.executable, '-B', '-c', RUN], stdout=subprocess.PIPE, text=True,
                              start_new_session=True) as p:
            self.assertEqual(p.stdout.readline(), 'runs\n')
            send(p.pid, number)
            self.assertIn(f'ended by {number.name} beside None\n', p.stdout.read())
            self.assertEqual(p.wait(60), 7)

    def test_by_a_signal_to_its_process(self):
        self.ended(signal.SIGTERM, os.kill)

    def test_by_ctrl_c(self):
        """A terminal sends it to the whole group; the load goes on until the run ends it"""
        self.ended(signal.SIGINT, os.killpg)


if __name__ == '__main__':
    unittest.main()
