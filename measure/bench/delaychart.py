# SPDX-License-Identifier: Apache-2.0
"""What measure/bench/delay found, drawn: of each stream beside bulk a line from the median to 99 %, by a scale of ms"""
import math

from report import COLOURS, STYLE, text

LINE, TOP, LEFT, SCALE, RIGHT = 14, 96, 170, 560, 30      # pixels
WIDTH = LEFT + SCALE + RIGHT
LEAST, MOST = 0.1, 10_000                                 # ms


def where(ms):
    """The scale is logarithmic; what is beyond an end is at the end"""
    return LEFT + math.log(max(min(ms, MOST), LEAST) / LEAST) / math.log(MOST / LEAST) * SCALE


def scale(height):
    out = []
    for exponent in range(-1, 5):
        x = where(10 ** exponent)
        out += [f'<line x1="{x:.1f}" y1="{TOP - 2}" x2="{x:.1f}" y2="{height - 8}" class="grid"/>',
                text(x, TOP - 8, f'{10 ** exponent:g} ms', 'dim', 11, 'middle')]
    return out


def bar(colour, y, stream):
    a, b = (where(stream[f'p{p}_us'] / 1000) for p in (50, 99))
    return [f'<line x1="{a:.1f}" y1="{y}" x2="{b:.1f}" y2="{y}" stroke="{colour}" stroke-width="3" stroke-opacity=".45"/>',
            f'<circle cx="{a:.1f}" cy="{y}" r="4.5" fill="{colour}"/>']


def rows(results, when):
    """Three lines each: voice, game, video"""
    out, y = [], TOP + 12
    for r in results:
        out.append(text(LEFT - 14, y + LINE + 4, f'{r["link"]}, {r["kind"]}', anchor='end'))
        for n, stream in enumerate(r[when]['streams'].values()):
            if stream['p50_us']:
                out += bar(COLOURS[n], y + n * LINE, stream)
        y += 3 * LINE + 12
    return out, y


def write(path, results, where_, when):
    results = [r for r in results if 'failed' not in r]
    drawn, height = rows(results, when)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           'font-family="Helvetica, Arial, sans-serif" font-size="12">', f'<style>{STYLE}</style>',
           f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
           text(16, 28, f'Round trips {when}: median (dot) to 99 %', size=18),
           text(16, 47, f'Linux {where_["kernel"]}, {where_["date"]}, {where_["seconds"]} s each', 'dim')]
    for n, name in enumerate(results[0][when]['streams'] if results else ()):
        out += [f'<circle cx="{22 + 80 * n}" cy="66" r="4.5" fill="{COLOURS[n]}"/>', text(32 + 80 * n, 70, name)]
    with open(path, 'w', encoding='utf-8') as f:
        f.write('\n'.join([*out, *scale(height), *drawn, '</svg>', '']))
