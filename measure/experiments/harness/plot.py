# SPDX-License-Identifier: Apache-2.0
"""Plots: matplotlib without a display, one look for all."""
import io

OURS, PUBLISHED = '#0b7a75', '#b0b0b0'
COLOURS = ('#0b7a75', '#d1495b', '#c98a00', '#3d5a98', '#8a5a9e', '#2f8f5b', '#888888', '#444444')
STYLE = {'font.size': 9, 'axes.grid': True, 'grid.color': '#e4e4e4', 'axes.axisbelow': True,
         'axes.spines.top': False, 'axes.spines.right': False, 'legend.frameon': False,
         'legend.fontsize': 8, 'lines.linewidth': 1.4, 'figure.constrained_layout.use': True,
         'savefig.dpi': 110, 'svg.hashsalt': 'ofqos'}
SHADES = 64              # of a PNG: lines and text need no more, and the file is a third


def draw(figure, path):
    """An experiment's Figure to a PNG or, by the path's name, an SVG"""
    # pylint: disable=import-outside-toplevel
    import matplotlib
    matplotlib.use('Agg')
    from matplotlib.figure import Figure
    from PIL import Image
    with matplotlib.rc_context(STYLE):
        canvas = Figure(figsize=figure.size)
        figure.draw(canvas)
        if path.endswith('.svg'):
            canvas.savefig(path, metadata={'Date': None})      # the same samples, the same bytes
            return
        drawn = io.BytesIO()
        canvas.savefig(drawn)
    Image.open(drawn).convert('RGB').quantize(SHADES).save(path, optimize=True)


def bars(axes, labels, series, errors=None, log=False, unit=''):
    """Groups of bars, one a series: {name: values}; a value that is None is left out."""
    width = 0.8 / len(series)
    for i, (name, values) in enumerate(series.items()):
        colour = PUBLISHED if name == 'published' else \
            (OURS, *COLOURS[1:])[i - ('published' in series and i > 0)]
        at = [x + (i - (len(series) - 1) / 2) * width for x in range(len(labels))]
        kept = [(x, v, k) for k, (x, v) in enumerate(zip(at, values)) if v is not None]
        more = (errors or {}).get(name)
        axes.bar([x for x, _, _ in kept], [v for _, v, _ in kept], width * 0.92, label=name,
                 color=colour, yerr=[more[k] for _, _, k in kept] if more else None,
                 error_kw={'lw': 0.8})
    axes.set_xticks(range(len(labels)), labels)
    axes.grid(axis='x', visible=False)
    if log:
        axes.set_yscale('log')
    if unit:
        axes.set_ylabel(unit)
    axes.legend()
