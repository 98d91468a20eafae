# SPDX-License-Identifier: Apache-2.0
"""What measure/bench/run makes of samples: verdicts with and without an earlier build, and the plot."""
import os
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../measure/bench'))
import report  # noqa: E402
import required  # noqa: E402
from measures import KINDS, SUPER, TESTS  # noqa: E402
from subjects import BEFORE, OURS, SUBJECTS, before  # noqa: E402

ABOUT = {'started': '2026-11-22T12:00:00+0000', 'rounds': 2,
         'versions': {'ofdatapath': 'ofqos 0.1', 'processor': 'Some CPU', 'machine': 'x86_64',
                      'cpus': 2, 'kernel': '6.1'}}
SVG = '{http://www.w3.org/2000/svg}'


def samples(*rows):
    out = report.Samples()
    for test, subject, figure, *values in rows:
        for turn, value in enumerate(values):
            out.add(test, subject, turn, {figure: value})
    return out


def verdict(got, test, figure=None):
    return next(v for v in required.verdicts(got) if v[0].test == test and
                figure in (None, v[0].figure))


class Bounds(unittest.TestCase):
    def test_ratio_is_of_one_round(self):
        got = samples(('tcp1', 'ours', 'Gbit/s', 12, 24, 1), ('tcp1', 'bridge', 'Gbit/s', 10, 20, 2))
        row, measured, holds, was = verdict(got, 'tcp1')
        self.assertEqual((row.to_subject, measured, holds, was), ('bridge', 1.2, True, None))

    def test_build_before_is_beside_the_same_bridge(self):
        got = samples(('rtt', 'ours', 'us p50', 10), ('rtt', 'ours before', 'us p50', 50),
                      ('rtt', 'bridge', 'us p50', 10))
        _, measured, holds, was = verdict(got, 'rtt')
        self.assertEqual((measured, holds, was), (1, True, 5))

    def test_build_before_is_compared_with_itself(self):
        got = samples(('cpu', 'crowded', 'CPU s/Mpacket', 2), ('cpu', 'userspace', 'CPU s/Mpacket', 2),
                      ('cpu', 'crowded before', 'CPU s/Mpacket', 12),
                      ('cpu', 'userspace before', 'CPU s/Mpacket', 3))
        _, measured, holds, was = verdict(got, 'cpu')
        self.assertEqual((measured, holds, was), (1, True, 4))

    def test_figures_of_one_sample(self):
        got = samples(('pipeline', 'ours', 'ns', 50), ('pipeline', 'ours', 'ns, yardstick', 100))
        self.assertEqual(verdict(got, 'pipeline')[1:3], (0.5, True))

    def test_standing_still_does_not_hold(self):
        got = samples(('super-mpls', 'ours', 'TCP', 0), ('super-mpls', 'bridge', 'TCP', 10))
        self.assertEqual(verdict(got, 'super-mpls')[1:3], (0, False))

    def test_no_bound_no_verdict(self):
        got = samples(('mods-beside10', 'userspace', 'CPU s/Mpacket', 3),
                      ('mods-beside0', 'userspace', 'CPU s/Mpacket', 2))
        self.assertEqual(verdict(got, 'mods-beside10')[1:3], (1.5, None))
        self.assertNotIn('HOLD', report.verdict_table(required.verdicts(got)))

    def test_rows_name_what_there_is(self):
        for r in required.REQUIRED:
            self.assertIn(r.subject, TESTS[r.test].takes, r.what)
            self.assertIn(r.subject, SUBJECTS)
            if r.to_subject:
                self.assertIn(r.to_subject, TESTS[r.to_test].takes, r.what)

    def test_every_tunnel_has_a_bound(self):
        judged = {(r.test, r.figure) for r in required.REQUIRED if r.bound == 0.3}
        self.assertEqual(judged, {(f'super-{kind.lower()}', f) for kind in KINDS for f in SUPER})

    def test_only_our_switch_has_an_earlier_build(self):
        self.assertEqual([before(s) != s for s in SUBJECTS], [s in OURS for s in SUBJECTS])
        self.assertEqual(before('ours'), 'ours' + BEFORE)


class Plot(unittest.TestCase):
    def plot(self, got):
        titles = {s: SUBJECTS[s].title for s in SUBJECTS if any(s in v for v in got.got.values())}
        with tempfile.TemporaryDirectory() as d:
            report.write_svg(f'{d}/x.svg', got, TESTS, titles, ABOUT)
            tree = ET.parse(f'{d}/x.svg')
        return tree, [t.text for t in tree.iter(SVG + 'text')]

    def at(self, ratio):
        return f'{report.where(ratio):.1f}'

    def dots(self, tree):
        return [c.get('cx') for c in tree.iter(SVG + 'circle') if c.get('cy') != '66']

    def test_a_row_without_the_bridge_is_left_out(self):
        tree, words = self.plot(samples(('mods1m', 'ours', 'added/s', 1e6),
                                        ('mods1m', 'ovs', 'added/s', 1e5)))
        self.assertEqual(self.dots(tree), [])
        self.assertNotIn(TESTS['mods1m'].what, words)
        self.assertNotIn(SUBJECTS['ovs'].title, words)       # nor is it in the legend

    def test_machine_date_and_version(self):
        _, words = self.plot(samples())
        for what in '2026-11-22', 'ofqos 0.1', 'Some CPU', '2 cores', 'Linux 6.1':
            self.assertIn(what, words[1])

    def test_the_bridge_is_the_scale(self):
        tree, words = self.plot(samples(('tcp1', 'ours', 'Gbit/s', 5), ('tcp1', 'bridge', 'Gbit/s', 10)))
        self.assertEqual(self.dots(tree), [self.at(0.5)])
        self.assertIn('5.00 / 10.00 Gbit/s', words)

    def test_less_time_is_faster(self):
        tree, _ = self.plot(samples(('rtt', 'ours', 'us p50', 20), ('rtt', 'bridge', 'us p50', 10)))
        self.assertEqual(self.dots(tree), [self.at(0.5)])

    def test_tables_are_beside_the_bridge_with_the_same_packets(self):
        tree, _ = self.plot(samples(('churn1m', 'ours', 'packets/s', 2e5),
                                    ('churn', 'bridge', 'packets/s', 1e5)))
        self.assertEqual(self.dots(tree), [self.at(2)])

    def test_what_stands_still_has_no_dot(self):
        tree, _ = self.plot(samples(('super-gre', 'ours', 'TCP', 0), ('super-gre', 'bridge', 'TCP', 4)))
        self.assertEqual(self.dots(tree), [])
        self.assertEqual(len(list(tree.iter(SVG + 'path'))), 1)

    def test_scale_ends(self):
        self.assertEqual(report.where(1e-6), report.where(report.LEAST))
        self.assertEqual(report.where(1e6), report.where(report.MOST))


if __name__ == '__main__':
    unittest.main()
