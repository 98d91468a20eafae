# SPDX-License-Identifier: Apache-2.0
"""The connection: the address, files of commands, bundles that take long, echoes.

    test_connection.py PATH-OF-DPCTL
"""
import struct
import subprocess
import time

import fixture
from fixture import Dpctl, Switch, run
from support import bundle, of13


class Connection(Dpctl):
    def test_no_switch(self):
        done = self.check(run('unix:/nonexistent/s', 'features'), 1)
        self.assertIn('/nonexistent/s', done.stderr)
        with Switch(hello=of13.message(0, b'', version=1)) as switch:
            self.assertIn('1.3', self.check(run(switch, 'features'), 1).stderr)
        with Switch(hello=b'HTTP/1.1 400 Bad Request\r\n\r\n') as switch:
            self.check(run(switch, '--timeout', '1', 'features'), 1)
        with Switch() as switch: # which doesn't answer
            start = time.monotonic()
            self.assertIn('--timeout', self.check(run(switch, '--timeout', '1', 'features'),
                                                  1).stderr)
            self.assertLess(time.monotonic() - start, 4)

    def commit(self, alive):
        """A commit that the switch answers when it has been asked for so many echoes; it answers `alive`
        of these."""
        committed, echoes = [], []

        def experimenter(xid, body):
            kind = struct.unpack_from('!H', body, 12)[0] if body[4:8] == b'\0\0\x08\xfc' else None
            if kind == bundle.COMMIT:
                committed.append(xid)
            return [bundle.control(kind + 1, xid)] if kind == bundle.CLOSE else []

        def echo(xid, body):
            echoes.append(xid)
            if len(echoes) > 4:
                return [bundle.control(bundle.COMMIT_REPLY, committed[0])]
            return [of13.message(3, body, xid)] if len(echoes) <= alive else []

        with Switch({4: experimenter, 2: echo}) as switch:
            return run(switch, '--timeout', '2', '-F', '-', '--atomic', stdin='del-flows table=0\n')

    def test_a_long_commit(self):
        """It may take longer than --timeout while the switch shows signs of life."""
        self.check(self.commit(alive=4))
        self.assertIn('--timeout', self.check(self.commit(alive=1), 1).stderr)

    def test_address_last(self):
        reply = lambda xid, _: [of13.message(6, struct.pack('!QIBB2xII', 1, 0, 4, 0, 0x4f, 0), xid)]
        for args in (['features', 'ADDRESS'], ['ADDRESS', 'features'],
                     ['features', '--json', 'PATH'], ['PATH', '--json', 'features']):
            with self.subTest(args), Switch({5: reply}) as switch:
                words = [{'ADDRESS': 'unix:' + switch.path, 'PATH': switch.path}.get(a, a)
                         for a in args]
                done = subprocess.run([fixture.DPCTL, *words], text=True, stdout=subprocess.PIPE,
                                      timeout=20)
                self.assertEqual(done.returncode, 0)
                self.assertIn('0x0000000000000001', done.stdout)

    def test_file(self):
        lines = '# two entries\nflow-mod cmd=add,table=0  # one\n\n  flow-mod cmd=add,table=1\n'
        with Switch() as switch:
            self.check(run(switch, '-F', '-', stdin=lines))
        self.assertEqual([k for k, _ in switch.got], [14, 20, 14, 20])
        with Switch() as switch:
            done = self.check(run(switch, '-F', '-', stdin=lines + 'banana\nfeatures\n'), 2)
        self.assertIn('stdin:5:', done.stderr)
        self.assertEqual([k for k, _ in switch.got], [14, 20, 14, 20])

    def test_ping(self):
        with Switch({2: lambda xid, body: [of13.message(3, body, xid)]}) as switch:
            done = self.check(run(switch, 'ping', '2'))
        self.assertEqual(len(done.stdout.splitlines()), 2)


if __name__ == '__main__':
    fixture.main()
