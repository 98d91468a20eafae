# SPDX-License-Identifier: Apache-2.0
"""Panels of lines over time as an SVG."""
import html

WIDTH, LEFT, RIGHT, PANEL, GAP, TOP = 860, 76, 150, 120, 46, 66     # pixels
COLOURS = ('#0b7a75', '#d1495b', '#c98a00', '#3d5a98', '#8a5a9e', '#2f8f5b')
STYLE = '''.paper { fill: #fff } text { fill: #222 } .dim { fill: #666 } .grid { stroke: #e4e4e4 }
@media (prefers-color-scheme: dark) { .paper { fill: #16191d } text { fill: #e6e6e6 }
.dim { fill: #9aa0a6 } .grid { stroke: #2c3036 } }'''


def text(x, y, words, kind='', size=12, anchor='start'):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"' + \
        (f' class="{kind}"' if kind else '') + f'>{html.escape(words)}</text>'


def nice(most):
    """A round number that is not less"""
    step = 10 ** (len(str(int(most))) - 1) if most >= 1 else 10 ** -3
    while step * 10 <= most:
        step *= 10
    return next(step * k for k in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * k >= most)


def path(points):
    """Text of a line through points of pixels, without those in the middle of a level piece"""
    words = [(f'{x:.1f}', f'{y:.1f}') for x, y in points]
    return ' '.join(f'{x},{y}' for k, (x, y) in enumerate(words)
                    if not 0 < k < len(words) - 1 or not words[k - 1][1] == y == words[k + 1][1])


def panel(at, title, unit, series, end):
    """series: {name: [(seconds, value)]}, values in the unit"""
    most = nice(max((v for points in series.values() for _, v in points), default=1) or 1)
    bottom = at + PANEL
    out = [text(LEFT, at - 8, title), text(LEFT - 8, at - 8, unit, 'dim', 11, 'end')]
    for k in range(3):
        y = bottom - PANEL * k / 2
        out += [f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" class="grid"/>',
                text(LEFT - 8, y + 4, f'{most * k / 2:,.6g}', 'dim', 11, 'end')]
    for n, (name, points) in enumerate(series.items()):
        colour = COLOURS[n % len(COLOURS)]
        line = path((LEFT + (WIDTH - LEFT - RIGHT) * x / end, bottom - PANEL * min(v / most, 1)) for x, v in points)
        out += [f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.2"/>',
                f'<circle cx="{WIDTH - RIGHT + 14}" cy="{at + 8 + 17 * n}" r="4" fill="{colour}"/>',
                text(WIDTH - RIGHT + 24, at + 12 + 17 * n, name, size=11)]
    return out


def svg(title, about, panels):
    """panels: [(title, unit, {name: [(seconds, value)]})]"""
    end = max((x for _, _, s in panels for points in s.values() for x, _ in points), default=1) or 1
    height = TOP + (PANEL + GAP) * len(panels)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           'font-family="Helvetica, Arial, sans-serif" font-size="12">', f'<style>{STYLE}</style>',
           f'<rect class="paper" width="{WIDTH}" height="{height}"/>', text(16, 24, title, size=17),
           text(16, 42, about, 'dim')]
    for n, (name, unit, series) in enumerate(panels):
        out += panel(TOP + 10 + (PANEL + GAP) * n, name, unit, series, end)
    bottom = TOP + 10 + (PANEL + GAP) * len(panels) - GAP
    minutes = end > 180
    for k in range(7):
        x = LEFT + (WIDTH - LEFT - RIGHT) * k / 6
        out.append(text(x, bottom + 16, f'{end * k / 6 / (60 if minutes else 1):.3g}', 'dim', 11, 'middle'))
    out.append(text(WIDTH - RIGHT + 24, bottom + 16, 'minutes' if minutes else 'seconds', 'dim', 11))
    return '\n'.join(out + ['</svg>', ''])
