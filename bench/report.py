# SPDX-License-Identifier: Apache-2.0
"""Medians, ratios to the bridge of the same round, a table, JSON and a plot."""
import html
import json
import os
import platform
import statistics
import subprocess

COLOURS = ('#888888', '#c98a00', '#0b7a75', '#5fb3ae', '#2f8f5b', '#96b84a', '#d1495b', '#8a5a9e',
           '#3d5a98')


def median(values):
    return statistics.median(values) if values else None


def number(v):
    if v is None:
        return '-'
    if v >= 1e6:
        return f'{v / 1e6:.2f} M'
    if v >= 1e4:
        return f'{v / 1e3:.0f} k'
    return f'{v:.2f}' if v < 100 else f'{v:.0f}'


class Samples:
    """{test: {subject: {figure: {round: value}}}}"""

    def __init__(self):
        self.got = {}

    def add(self, test, subject, turn, figures):
        for name, value in figures.items():
            self.got.setdefault(test, {}).setdefault(subject, {}).setdefault(name, {})[turn] = value

    def of(self, test, subject, figure):
        return self.got.get(test, {}).get(subject, {}).get(figure, {})

    def median(self, test, subject, figure):
        return median(list(self.of(test, subject, figure).values()))

    def ratio(self, test, subject, figure, to='bridge'):
        """Median of the rounds' ratios"""
        return self.between((test, subject, figure), (test, to, figure))

    def between(self, a, b):
        """The same for any two (test, subject, figure)"""
        return median(self.ratios(a, b))

    def ratios(self, a, b):
        mine, base = self.of(*a), self.of(*b)
        return [mine[r] / base[r] for r in mine if base.get(r)]


def table(samples, tests, titles):
    lines = []
    for name, test in tests.items():
        if name not in samples.got:
            continue
        lines.append(f'{test.what} ({name})')
        for subject, figures in samples.got[name].items():
            ratio = samples.ratio(name, subject, test.units)
            parts = [f'{number(samples.median(name, subject, f))} {f}' for f in figures]
            shown = f'{ratio:.2f}' if ratio is not None else '-'
            lines.append(f'    {titles[subject]:18} {shown:>6}   ' + '   '.join(parts))
        lines.append('')
    return '\n'.join(lines)


def before_table(samples, tests):
    """Each test's figure beside the build before: the median of the rounds' ratios, and the least and
    the largest of them, which tell the noise"""
    lines = [f'{"beside the build before":52} {"ratio":>6} {"rounds":>13}']
    for name, test in tests.items():
        ratios = samples.ratios((name, 'ours', test.units), (name, 'before', test.units))
        if ratios:
            lines.append(f'{test.what + (" (less is better)" if test.lower else ""):52} '
                         f'{median(ratios):6.2f} {min(ratios):6.2f} {max(ratios):6.2f}')
    return '\n'.join(lines) + '\n'


def verdict_table(judged):
    lines = [f'{"":52} {"required":>10} {"measured":>10}']
    for row, got, holds in judged:
        lines.append(f'{row.what:52} {row.sense} {number(row.bound):>7} {number(got):>10}   '
                     f'{"holds" if holds else "DOES NOT HOLD"}')
    return '\n'.join(lines) + '\n'


def versions(build):
    def first(*words):
        try:
            return subprocess.run(words, capture_output=True, text=True,
                                  check=False).stdout.split('\n')[0]
        except OSError:
            return None
    with open('/proc/cpuinfo') as f:
        model = [line.split(':', 1)[1].strip() for line in f if line.startswith('model name')]
    return {'kernel': platform.release(), 'machine': platform.machine(),
            'processor': model[0] if model else None, 'cpus': os.cpu_count(),
            'ofdatapath': first(f'{build}/datapath/ofdatapath', '--version'),
            'ovs': first('ovs-vswitchd', '--version'), 'iperf3': first('iperf3', '--version')}


def write_json(path, samples, tests, judged, parameters):
    summary = {name: {s: {'median': samples.median(name, s, test.units), 'unit': test.units,
                          'to_bridge': samples.ratio(name, s, test.units)}
                      for s in samples.got[name]}
               for name, test in tests.items() if name in samples.got}
    required = [{**row._asdict(), 'measured': got, 'holds': holds} for row, got, holds in judged]
    with open(path, 'w') as f:
        json.dump({**parameters, 'required': required, 'summary': summary,
                   'samples': samples.got}, f, indent=1)


# ------------------------------------------------------------------------------ plot

BAR, GAP, LEFT, WIDTH, TOP = 15, 16, 410, 1200, 66


def bars(samples, tests):
    """[(title, [(subject, share of the longest, label)])]; by the ratio to the bridge where there
    is one, else to the largest"""
    for name, test in tests.items():
        got = samples.got.get(name)
        if not got:
            continue
        middle = {s: samples.median(name, s, test.units) or 0 for s in got}
        ratio = {s: samples.ratio(name, s, test.units) for s in got}
        top = max(middle.values()) or 1
        yield (f'{test.what}' + (' (less is better)' if test.lower else ''),
               [(s, v / top if ratio[s] is None else ratio[s], f'{number(v)} {test.units}'
                 + ('' if ratio[s] is None else f'  ({ratio[s]:.2f})'))
                for s, v in middle.items()])


def write_svg(path, samples, tests, titles):
    groups = list(bars(samples, tests))
    top = max((share for _, row in groups for _, share, _ in row), default=1)
    top = min(top, 3)
    rows = sum(len(row) for _, row in groups)
    height = TOP + rows * BAR + len(groups) * GAP + 20
    colour = dict(zip(titles, COLOURS))
    room = WIDTH - LEFT - 200
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           'font-family="Helvetica, Arial, sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
           '<text x="16" y="28" font-size="18" fill="#222">Beside the Linux bridge: medians, in '
           'brackets the ratio to it</text>']
    x = 16
    for subject, title in titles.items():
        out.append(f'<rect x="{x}" y="40" width="12" height="12" fill="{colour[subject]}"/>'
                   f'<text x="{x + 17}" y="50" fill="#333">{html.escape(title)}</text>')
        x += 32 + 7 * len(title)
    at = LEFT + room / top
    out.append(f'<line x1="{at:.1f}" y1="{TOP - 6}" x2="{at:.1f}" y2="{height - 30}" stroke="#bbb" '
               'stroke-dasharray="3 4"/>')
    y = TOP
    for title, row in groups:
        out.append(f'<text x="{LEFT - 12}" y="{y + 11}" text-anchor="end" fill="#222">'
                   f'{html.escape(title)}</text>')
        for subject, share, label in row:
            width = min(share, top) / top * room
            out.append(f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR - 3}" '
                       f'fill="{colour[subject]}"/><text x="{LEFT + width + 6:.1f}" '
                       f'y="{y + 10}" font-size="11" fill="#444">{html.escape(label)}</text>')
            y += BAR
        y += GAP
    with open(path, 'w') as f:
        f.write('\n'.join(out + ['</svg>', '']))
