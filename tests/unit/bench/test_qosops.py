# SPDX-License-Identifier: Apache-2.0
"""The ways to make a queue that measure/bench/qosops.py compares: each addresses a tree that exists."""
import os
import sys
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../measure/bench'))
from qosops import Netlink, tree_of  # noqa: E402


class Trees(unittest.TestCase):
    def test_queues_fill_one_tree_after_the_other(self):
        self.assertEqual([tree_of(n, 4, 8) for n in range(1, 9)], [1, 1, 2, 2, 3, 3, 4, 4])
        self.assertEqual([tree_of(n, 3, 7) for n in range(1, 8)], [1, 1, 1, 2, 2, 3, 3])

    def test_a_queue_beyond_them_is_in_the_last_tree(self):
        for trees, to in (1, 1), (1, 100), (4, 8), (3, 7), (4, 1000):
            for queue in to + 1, 2 * to, 65000:
                self.assertEqual(tree_of(queue, trees, to), trees, (queue, trees, to))

    def test_rtnetlink_is_asked_for_a_tree_that_is_there(self):
        """Q1 fills a port and then times one queue more"""
        way = object.__new__(Netlink)
        way.index, way.tc, way.to = 5, types.SimpleNamespace(trees=4), 8
        for queue, tree in (1, 1), (8, 4), (9, 4):
            for operation in 'add', 'change', 'delete':
                raw = way.message(operation, queue)
                self.assertEqual(int.from_bytes(raw[24:28], sys.byteorder), tree << 16 | queue,
                                 (operation, queue))


if __name__ == '__main__':
    unittest.main()
