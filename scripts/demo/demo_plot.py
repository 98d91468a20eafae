# SPDX-License-Identifier: Apache-2.0
"""A line plot as SVG, without any library."""
import html
import math

WIDTH, HEIGHT = 960, 480
LEFT, RIGHT, TOP, BOTTOM = 76, 150, 64, 60
COLOURS = ('#0b7a75', '#d1495b', '#3d5a98', '#c98a00')


def ticks(top, wanted=6):
    """Round steps from 0 to at least `top`"""
    raw = top / wanted
    power = 10 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw)
    return [i * step for i in range(math.ceil(top / step) + 1)]


def write(path, title, series, configured):
    """series: {name: [(seconds, Mbit/s)]}; configured: {name: Mbit/s}, drawn dashed."""
    points = [p for line in series.values() for p in line]
    x_end = max(x for x, _ in points)
    y_ticks = ticks(max([y for _, y in points] + list(configured.values())) * 1.08)
    plot_w, plot_h = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def px(x):
        return LEFT + x / x_end * plot_w

    def py(y):
        return TOP + plot_h - y / y_ticks[-1] * plot_h

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="Helvetica, Arial, sans-serif" font-size="14">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="36" font-size="20" fill="#222">{html.escape(title)}</text>']
    for y in y_ticks:
        out.append(f'<line x1="{LEFT}" y1="{py(y):.1f}" x2="{LEFT + plot_w}" y2="{py(y):.1f}" '
                   'stroke="#e4e4e4"/>')
        out.append(f'<text x="{LEFT - 10}" y="{py(y) + 5:.1f}" text-anchor="end" '
                   f'fill="#555">{y:g}</text>')
    for x in ticks(x_end):
        if x <= x_end:
            out.append(f'<text x="{px(x):.1f}" y="{TOP + plot_h + 22}" text-anchor="middle" '
                       f'fill="#555">{x:g}</text>')
    out.append(f'<text x="{LEFT + plot_w / 2}" y="{HEIGHT - 14}" text-anchor="middle" '
               'fill="#555">seconds</text>')
    out.append(f'<text transform="translate(22 {TOP + plot_h / 2}) rotate(-90)" '
               'text-anchor="middle" fill="#555">Mbit/s on the wire</text>')
    out.append(f'<line x1="{LEFT}" y1="{TOP + plot_h}" x2="{LEFT + plot_w}" '
               f'y2="{TOP + plot_h}" stroke="#888"/>')
    for colour, (name, line) in zip(COLOURS, series.items()):
        goal = configured[name]
        out.append(f'<line x1="{LEFT}" y1="{py(goal):.1f}" x2="{LEFT + plot_w}" '
                   f'y2="{py(goal):.1f}" stroke="{colour}" stroke-dasharray="7 5" '
                   'stroke-width="1.5" opacity="0.7"/>')
        path_data = ' '.join(f'{px(x):.1f},{py(y):.1f}' for x, y in line)
        out.append(f'<polyline points="{path_data}" fill="none" stroke="{colour}" '
                   'stroke-width="2.5" stroke-linejoin="round"/>')
        label = LEFT + plot_w + 12
        out.append(f'<text x="{label}" y="{py(goal):.1f}" fill="{colour}" '
                   f'font-weight="bold">{html.escape(name)}</text>')
        out.append(f'<text x="{label}" y="{py(goal) + 18:.1f}" fill="{colour}" '
                   f'font-size="12">configured {goal:g}</text>')
    with open(path, 'w') as f:
        f.write('\n'.join(out + ['</svg>', '']))
