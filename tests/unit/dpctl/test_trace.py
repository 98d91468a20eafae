# SPDX-License-Identifier: Apache-2.0
"""dpctl trace, by answers that no real switch gives.

    test_trace.py PATH-OF-DPCTL
"""
import json
import os
import struct
import tempfile

import fixture
from fixture import MP_REQUEST, Dpctl, Switch, multipart, run
from support import of13

HEAD = struct.pack('!II', 0x514f5346, 7)


def event(kind, depth, body):
    raw = struct.pack('!HHB', kind, 5 + len(body), depth) + body
    return raw + bytes(-len(raw) % 8)


def drop(depth=1):
    return event(18, depth, bytes(3) + b'drop.meter'.ljust(32, b'\0') +
                 b'over a meter\'s \x1b[31mrate'.ljust(96, b'\0'))


class Trace(Dpctl):
    def answer(self, *parts, words=('in_port=1',), status=0):
        with Switch({MP_REQUEST: multipart(*[HEAD + p for p in parts])}) as switch:
            done = self.check(run(switch, 'trace', *words), status)
        self.got = switch.got
        return done

    def test_the_request(self):
        self.answer(drop(), words=('in_port=3', 'eth_type=0x88b5', 'eth_src=02:00:00:00:00:07',
                                   'metadata=5', 'queue=9'))
        self.assertEqual(self.got[0], (of13.SET_ASYNC, bytes(24)))      # dpctl is no controller
        kind, body = self.got[1]
        self.assertEqual(kind, MP_REQUEST)
        frame = bytes.fromhex('020000000002 020000000007 88b5') + bytes(46)
        self.assertEqual(body, struct.pack('!HH4x', 0xffff, 0) + HEAD +
                         struct.pack('!IIQQHBxH2x', 3, 9, 5, 0, 0, 0, 0) + frame)

    def test_unknown_events_are_skipped_and_parts_joined(self):
        done = self.answer(event(900, 0, b'anything') + drop(), event(19, 0, bytes(3)))
        self.assertEqual(done.stdout, "  dropped: over a meter's \\x1b[31mrate (drop.meter)\n"
                                      '... and so on: the switch tells no more than 2 MB of one '
                                      "packet\nDropped: over a meter's \\x1b[31mrate (drop.meter)\n")

    def test_nothing_comes_of_it(self):
        self.assertEqual(self.answer(b'').stdout, 'Goes nowhere\n')

    def test_json(self):
        done = self.answer(drop(), words=('--json', 'in_port=1'))
        got = json.loads(done.stdout)
        self.assertEqual(got['packet'], 1)
        self.assertEqual(got['events'][0]['type'], 'drop')
        self.assertEqual(got['events'][0]['reason'], 'drop.meter')

    def test_malformed_answers(self):
        for bad in (b'\0', drop()[:-1], struct.pack('!HHB', 3, 5, 0) + bytes(3),
                    struct.pack('!HH', 18, 3) + bytes(4)):
            self.assertIn('malformed', self.answer(bad, status=1).stderr)

    def test_any_frame_goes_out_as_it_is(self):
        frame = bytes(range(200))
        with tempfile.NamedTemporaryFile(suffix='.pcap') as f:
            f.write(struct.pack('<IHHIIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1) +
                    struct.pack('<IIII', 0, 0, len(frame), len(frame)) + frame)
            f.flush()
            self.answer(drop(), words=('in_port=1', f.name))
        self.assertTrue(self.got[1][1].endswith(frame))
        self.assertFalse(os.path.exists(f.name))


assert of13.VERSION == 4
if __name__ == '__main__':
    fixture.main()
