# SPDX-License-Identifier: Apache-2.0
"""A world that treats the switch badly, by adverse.c: a kernel that answers late or never, notices that are
lost, clocks that jump.

    with Adverse(tmp_path) as world, Switch(topo, prefix=world.environment()) as switch:
        world.realtime = -10 * YEAR
"""
import os
import struct

from . import of13, preload
from .wait import until

HERE = os.path.dirname(os.path.abspath(__file__))
YEAR = 365 * 86400
FORMAT = '=qqIIIIIIIIIII4x'
SECONDS = {'realtime': 0, 'monotonic': 8}
NUMBERS = {name: 16 + 4 * i for i, name in enumerate((
    'busy', 'let_through', 'withheld', 'swallowed', 'notices_lost', 'packets_refused', 'ring_ms',
    'rings_at_once', 'link_ms', 'links', 'seen'))}


class Adverse:
    """The library, and the file by which it is told; its members are those of struct adverse, times in s."""

    def __init__(self, directory):
        library, path, told = preload.build(os.path.join(HERE, 'adverse.c'), directory, struct.calcsize(FORMAT),
                                            '-Wall', '-Werror')
        object.__setattr__(self, 'map', told)
        object.__setattr__(self, 'words', (
            'env', f'LD_PRELOAD={library}', f'OFQOS_ADVERSE={path}',
            'ASAN_OPTIONS=detect_leaks=1:exitcode=99:verify_asan_link_order=0'))

    def environment(self):
        """What comes before the switch's command"""
        return self.words

    def __getattr__(self, name):
        if name in SECONDS:
            return struct.unpack_from('=q', self.map, SECONDS[name])[0] / 1e9
        return struct.unpack_from('=I', self.map, NUMBERS[name])[0]

    def __setattr__(self, name, value):
        if name in SECONDS:
            struct.pack_into('=q', self.map, SECONDS[name], int(value * 1_000_000_000))
        else:
            struct.pack_into('=I', self.map, NUMBERS[name], value)

    def wait_seen(self, count=1):
        """Until the library has done so much of its work"""
        until(lambda: self.seen >= count, 'something is held, lost or refused', of13.PATIENCE)

    def relent(self):
        """The world is as usual again (but for the clocks)."""
        for name in NUMBERS:
            setattr(self, name, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.relent()
        self.realtime = self.monotonic = 0
