# SPDX-License-Identifier: Apache-2.0
"""Medians, ratios to the bridge of the same round, a table, JSON and a plot."""
import html
import json
import math
import os
import platform
import statistics
import subprocess

from subjects import BEFORE

COLOURS = ('#e08a00', '#0d8a83', '#7cc6c1', '#4c9f50', '#a3bf3f', '#d1495b', '#a06fc0', '#5b7fd0',
           '#c26f9a', '#8d7b4f')


def median(values):
    return statistics.median(values) if values else None


def number(v):
    if v is None:
        return '-'
    if v >= 1e6:
        return f'{v / 1e6:.2f} M'
    if v >= 1e4:
        return f'{v / 1e3:.0f} k'
    return f'{v:.0f}' if v >= 100 else f'{v:.2f}' if v >= 0.1 else f'{v:.2g}'


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
    """Each test's figures beside the build before: the median of the rounds' ratios, and the least
    and the largest of them, which tell the noise"""
    lines = [f'{"beside the build before":88} {"ratio":>6} {"rounds":>13}']
    for name, test in tests.items():
        for subject in samples.got.get(name, ()):
            for figure in test.figures:
                ratios = samples.ratios((name, subject, figure), (name, subject + BEFORE, figure))
                if ratios:
                    what = f'{label(test, figure)}, {subject}' + (' (less is better)'
                                                                if test.lower else '')
                    lines.append(f'{what:88} {median(ratios):6.2f} {min(ratios):6.2f} '
                                 f'{max(ratios):6.2f}')
    return '\n'.join(lines) + '\n'


def label(test, figure):
    """What a test measures; which figure of it, where it has several"""
    return test.what if len(test.figures) == 1 else f'{test.what}, {figure.removeprefix("us ")}'


def verdict_table(judged):
    earlier = any(was is not None for *_, was in judged)
    lines = [f'{"":58} {"required":>10} {"measured":>10}' + (f' {"before":>10}' if earlier else '')]
    for row, got, holds, was in judged:
        bound = f'{row.sense} {number(row.bound):>7}' if row.bound is not None else f'{"-":>10}'
        lines.append(f'{row.what:58} {bound} {number(got):>10}'
                     + (f' {number(was):>10}' if earlier else '')
                     + {True: '   holds', False: '   DOES NOT HOLD', None: ''}[holds])
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
    required = [{**row._asdict(), 'measured': got, 'holds': holds, 'before': was}
                for row, got, holds, was in judged]
    with open(path, 'w') as f:
        json.dump({**parameters, 'required': required, 'summary': summary,
                   'samples': samples.got}, f, indent=1)


# ------------------------------------------------------------------------------ plot

LINE, TOP, LEFT, SCALE, RIGHT = 21, 108, 412, 400, 230     # pixels
WIDTH = LEFT + SCALE + RIGHT
LEAST, MOST = 0.1, 10                                      # the scale's ends, times the bridge
STYLE = '''.paper { fill: #fff } text { fill: #222 } .dim { fill: #666 } .grid { stroke: #e4e4e4 }
.bridge { stroke: #888 } .still { fill: #c22 }
@media (prefers-color-scheme: dark) { .paper { fill: #16191d } text { fill: #e6e6e6 }
.dim { fill: #9aa0a6 } .grid { stroke: #2c3036 } .still { fill: #ff6b6b } }'''


def plotted(samples, tests):
    """[(what, [(subject, times as fast as the bridge)], ours and the bridge's figure)]: what the
    bridge does too, in order of the tests"""
    for name, test in tests.items():
        base = test.like or name
        for figure in test.figures:
            of_bridge = samples.median(base, 'bridge', figure)
            dots = [(s, samples.between((name, s, figure), (base, 'bridge', figure)))
                    for s in samples.got.get(name, {}) if s != 'bridge']
            dots = [(s, 1 / ratio if test.lower and ratio else ratio) for s, ratio in dots
                    if ratio is not None]
            if dots and of_bridge:
                ours = samples.median(name, 'ours', figure)
                yield label(test, figure), dots, figures_of(test, figure, ours, of_bridge)


def figures_of(test, figure, ours, of_bridge):
    unit = figure if figure == test.units or figure.startswith('us ') else test.units
    unit = 'Gbit/s' if 'TCP' in unit else unit.removesuffix(' p50').removesuffix(' p99')
    return (f'{number(ours)} / ' if ours is not None else '- / ') + f'{number(of_bridge)} {unit}'


def where(ratio):
    """Of the scale, which is logarithmic; what is beyond an end is at the end"""
    share = math.log(max(min(ratio, MOST), LEAST) / LEAST) / math.log(MOST / LEAST)
    return LEFT + share * SCALE


def write_svg(path, samples, tests, titles, about):
    rows = list(plotted(samples, tests))
    shown = [s for s in titles if any(s == t for _, dots, _ in rows for t, _ in dots)]
    kinds = list(dict.fromkeys(s.removesuffix(BEFORE) for s in shown))
    colour = {s: COLOURS[kinds.index(s.removesuffix(BEFORE))] for s in shown}
    height = TOP + LINE * len(rows) + 26
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           'font-family="Helvetica, Arial, sans-serif" font-size="12">',
           f'<style>{STYLE}</style>',
           f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
           text(16, 28, 'Times as fast as the Linux bridge', size=18),
           text(16, 47, machine(about), 'dim')]
    out += legend(shown, titles, colour)
    out += scale(height)
    for n, (what, dots, figures) in enumerate(rows):
        y = TOP + LINE * n + 12
        if n % 2 == 0:
            out.append(f'<rect x="8" y="{y - 10.5}" width="{WIDTH - 16}" height="{LINE}" '
                       'fill="#808080" fill-opacity=".07"/>')
        out.append(text(LEFT - 24, y + 4, what, anchor='end'))
        out += [mark(colour[s], ratio, y, s) for s, ratio in reversed(dots)]
        out.append(text(LEFT + SCALE + 24, y + 4, figures, 'dim'))
    with open(path, 'w') as f:
        f.write('\n'.join(out + ['</svg>', '']))


def text(x, y, words, kind='', size=12, anchor='start'):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"' + \
        (f' class="{kind}"' if kind else '') + f'>{html.escape(words)}</text>'


def machine(about):
    v = about['versions']
    return ', '.join(str(word) for word in (
        about['started'][:10], v['ofdatapath'], f"{v['processor'] or v['machine']}",
        f"{v['cpus']} cores", f"Linux {v['kernel']}", f"medians of {about['rounds']} rounds"
        if about['rounds'] > 1 else 'one round'))


def legend(shown, titles, colour):
    out, x = [], 16
    for s in shown:
        out += [circle(colour[s], x + 5, 66, s), text(x + 16, 70, titles[s])]
        x += 40 + 6.6 * len(titles[s])
    return out


def scale(height):
    out = []
    for at in 0.1, 0.2, 0.5, 1, 2, 5, 10:
        x = where(at)
        out.append(f'<line x1="{x:.1f}" y1="{TOP - 2}" x2="{x:.1f}" y2="{height - 22}" class="'
                   + ('bridge' if at == 1 else 'grid') + '"/>')
        words = {LEAST: f'\u2264 {LEAST}', 1: 'bridge', MOST: f'\u2265 {MOST}'}.get(at, f'{at:g}')
        out.append(text(x, TOP - 8, words, 'dim', 11, 'middle'))
    out.append(text(LEFT + SCALE + 24, TOP - 8, 'ofdatapath / bridge', 'dim', 11))
    out.append(text(16, height - 6, '\u00d7: stands still. A round trip of half the time counts as twice as fast.', 'dim', 11))
    return out


def circle(colour, x, y, subject):
    """A ring for an earlier build"""
    size = 5.5 if subject == 'ours' else 4
    paint = f'fill="none" stroke="{colour}" stroke-width="2"' if subject.endswith(BEFORE) else \
        f'fill="{colour}"'
    return f'<circle cx="{x:.1f}" cy="{y}" r="{size}" {paint}/>'


def mark(colour, ratio, y, subject):
    if ratio:
        return circle(colour, where(ratio), y, subject)
    x, width = LEFT - 12, 1.2 if subject.endswith(BEFORE) else 2.8
    return f'<path d="M{x - 4} {y - 4}l8 8m0 -8l-8 8" stroke="{colour}" stroke-width="{width}"/>'
