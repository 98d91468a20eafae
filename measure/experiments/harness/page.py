# SPDX-License-Identifier: Apache-2.0
"""All results as one HTML page that needs nothing else."""
import base64
import html
import os

from . import answers, plot, results
from .experiment import UNUSABLE, Missing, reason

STYLE = '''
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em;
       color: #222; }
h2 { margin-top: 2.5em; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; margin: 1em 0; font-size: 90%; }
th, td { border: 1px solid #ddd; padding: .25em .6em; text-align: left; vertical-align: top; }
th { background: #f4f4f4; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
.holds { color: #08605b; font-weight: 600; } .fails { color: #b3202f; font-weight: 600; }
.open { color: #8a6100; font-weight: 600; } .why, .small { color: #555; font-size: 90%; }
p.lead { font-size: 130%; }
img { max-width: 100%; } figure { margin: 1em 0; } figcaption { color: #555; font-size: 90%; }
'''
KINDS = {'png': 'png', 'svg': 'svg+xml'}
CLASSES = {True: 'holds', False: 'fails', None: 'open'}


def text(value):
    return html.escape(str(value))


def cell(value):
    if isinstance(value, float):
        value = f'{value:,.2f}' if abs(value) < 1000 else f'{value:,.0f}'
    elif value is None:
        value = '-'
    looks = str(value).strip().lstrip('+-~')[:1].isdigit()
    return f'<td{" class=n" if looks else ""}>{text(value)}</td>'


def table(head, rows):
    return ('<table><tr>' + ''.join(f'<th>{text(h)}</th>' for h in head) + '</tr>'
            + ''.join('<tr>' + ''.join(map(cell, row)) + '</tr>' for row in rows) + '</table>')


def verdicts(found, experiment):
    rows = []
    for n, v in enumerate(found):
        why = f'<div class=why>{text(v["why"])}</div>' if v['why'] else ''
        rows.append(f'<tr id={answers.anchor(text(experiment), n)}><td>{text(v["claim"])}{why}</td>'
                    f'<td>{text(v["published"])}</td>'
                    f'<td>{text("-" if v["ours"] is None else v["ours"])}</td>'
                    f'<td class={CLASSES[v["holds"]]}>{text(v["verdict"])}</td></tr>')
    return ('<table><tr><th>claim</th><th>published</th><th>ours</th><th></th></tr>'
            + ''.join(rows) + '</table>')


def each(items):
    """What there is of a generator that may find a part missing, or unusable"""
    items = iter(items)
    while True:
        try:
            yield next(items)
        except StopIteration:
            return
        except (Missing, *UNUSABLE) as e:
            yield Missing(reason(e))
            return


def plots(result, out):
    """Draws an experiment's figures -> HTML"""
    parts, kind = [], 'svg' if result.experiment.svg else 'png'
    for figure in each(result.experiment.figures(result.samples(), result.p)):
        if isinstance(figure, Missing):
            parts.append(f'<p class=why>No plot: {text(figure)}</p>')
            continue
        path = os.path.join(out, f'{result.experiment.id}-{figure.name}.{kind}')
        try:
            plot.draw(figure, path)
        except (Missing, *UNUSABLE) as e:
            parts.append(f'<p class=why>No plot {text(figure.name)}: {text(reason(e))}</p>')
            continue
        with open(path, 'rb') as f:
            data = base64.b64encode(f.read()).decode()
        caption = text(figure.caption)
        parts.append(f'<figure><img alt="{caption}" src="data:image/{KINDS[kind]};base64,{data}">'
                     f'<figcaption>{caption}</figcaption></figure>')
    return parts


def tables(result):
    parts = []
    for one in each(result.experiment.tables(result.samples(), result.p)):
        if isinstance(one, Missing):
            parts.append(f'<p class=why>No table: {text(one)}</p>')
        else:
            parts.append(f'<p><b>{text(one.title)}</b></p>' + table(one.head, one.rows))
    return parts


def conditions(result):
    d = result.data
    commits = sorted({m['commit'] for m in d['parts'].values() if 'commit' in m})
    kernels = sorted({m['kernel'] for m in d['parts'].values()})
    took = sum(m['seconds'] for m in d['parts'].values())
    loads = [m['load_before'] for m in d['parts'].values()]
    tcp = sorted({m.get('tcp', '-') for m in d['parts'].values()})
    facts = [('parameters', ', '.join(f'{k} {v}' for k, v in d['parameters'].items())),
             ('measured', ', '.join(sorted({m['at'][:10] for m in d['parts'].values()}))
              + f', {took:.0f} s of measurements'),
             ('commits', ', '.join(commits)), ('kernels', ', '.join(kernels)),
             ('TCP congestion control', ', '.join(tcp)),
             ('load before the parts', f'{min(loads):.2f} to {max(loads):.2f}' if loads else '-'),
             ('machine', ', '.join(f'{k} {v}' for k, v in d.get('machine', {}).items())),
             ('versions', ', '.join(f'{k}: {v}' for k, v in d.get('versions', {}).items() if v))]
    return ('<details><summary>Conditions</summary>' + table(('', ''), facts)
            + f'<p class=small>Every sample: {text(d["id"])}.json.gz</p></details>')


def section(result, out):
    e = result.experiment
    failed = [f'<p class=why>{text(name)}: {text(why)}</p>'
              for name, why in result.data['failed'].items()]
    return ''.join([f'<h2 id={text(e.id)}>{text(e.id)}: {text(e.title)}</h2>',
                    f'<p class=small>{text(e.source)}</p>', f'<p>{text(e.set_up)}</p>',
                    f'<p><b>How this differs.</b> {text(e.differs)}</p>' if e.differs else '',
                    verdicts(result.data.get('verdicts', []), e.id), *plots(result, out),
                    *tables(result), *failed, conditions(result)])


def headline(result):
    """The claim that says most, of those that are judged"""
    found = result.data.get('verdicts', [])
    first = found[result.experiment.headline:] + found
    return next((v for v in first if v['holds'] is not None), None)


def link(to, words):
    return f'<a href="{text(to)}">{text(words)}</a>'


def works(every, those):
    """One sentence each: what holds, and what does not"""
    results_of, items = {r.experiment.id: r for r in every}, []
    for work in those:
        told = answers.gist(work, results_of)
        said = ['holds: ' + ', '.join(map(text, told[True]))] * bool(told[True])
        for how, words in ((False, 'does not hold, or not wholly'), (None, 'is not decided')):
            if told[how]:
                said.append(f'<span class={CLASSES[how]}>{words}</span>: ' + ', '.join(
                    f'{text(topic)} ({", ".join(link("#" + a, a) for a in anchors)})'
                    for topic, anchors in told[how]))
        if said:
            items.append(f'<li><b>{text(work.name)}</b> {"; ".join(said)}.</li>')
    return f'<ul>{"".join(items)}</ul>' if items else ''


def sentences(every, those):
    """The sentences of the sources, and where each is answered"""
    results_of, rows = {r.experiment.id: r for r in every}, []
    for work in those:
        for s in work.sentences:
            got = answers.found(s, results_of)
            where = [link('#' + a, a) for a, _ in got]
            if s.id and not got:
                where = [link('#' + s.id, s.id) if s.id in results_of else f'{s.id}, not in this run']
            where += [link(f'../{s.doc}', 'docs/' + s.doc)] * bool(s.doc)
            verdict = answers.worst(v for _, v in got) if got else None
            told = f'<td class={CLASSES[verdict["holds"]]}>{text(verdict["verdict"])}</td>' \
                if verdict else '<td></td>'
            rows.append(f'<tr><td>{text(work.name)}</td><td>{text(s.text)}</td>'
                        f'<td>{", ".join(where)} {text(s.note)}</td>{told}</tr>')
    return '<h2 id=sentences>The sources, sentence by sentence</h2><table><tr><th></th><th>sentence '\
        'of the source, in our words</th><th>where it is answered</th><th></th></tr>' \
        + ''.join(rows) + '</table>' if rows else ''


def conclusion(every, those):
    """How many claims hold, a sentence for each work, the main figure of each experiment, what does
    not hold"""
    found = [(result, n, v) for result in every
             for n, v in enumerate(result.data.get('verdicts', []))]
    counted = {h: sum(v['holds'] is h for _, _, v in found) for h in CLASSES}
    rows = []
    for result in every:
        own = result.data.get('verdicts', [])
        main, i = headline(result), result.experiment.id
        rows.append(f'<tr><td>{link("#" + i, i)}</td>'
                    f'<td>{text(main["claim"] if main else result.experiment.title)}</td>'
                    f'<td>{text(main["published"]) if main else "-"}</td>'
                    f'<td>{text(main["ours"]) if main else "-"}</td>'
                    f'<td class=n>{sum(v["holds"] is True for v in own)} of {len(own)}</td></tr>')
    missed = ''.join(
        f'<li>{link("#" + (a := answers.anchor(result.experiment.id, n)), a)} {text(v["claim"])}: '
        f'<span class={CLASSES[v["holds"]]}>{text(v["ours"] or v["verdict"])}</span></li>'
        for result, n, v in found if v['holds'] is not True)
    return (f'<p class=lead>{counted[True]} of {len(found)} claims hold'
            + f', {counted[False]} do not' * bool(counted[False])
            + f', {counted[None]} could not be measured or decided' * bool(counted[None]) + '.</p>'
            + works(every, those)
            + '<table><tr><th></th><th>claim</th><th>published</th><th>ours</th>'
            '<th>claims that hold</th></tr>' + ''.join(rows) + '</table>'
            + (f'<p>What does not hold, or was not measured:</p><ul>{missed}</ul>' if missed else ''))


def measured(every):
    """When, and of which commit"""
    parts = [part for result in every for part in result.data['parts'].values()]
    days = sorted({part['at'][:10] for part in parts})
    commits = sorted({part.get('commit', 'of a tree with changes') for part in parts})
    return ((' to '.join(dict.fromkeys((days[0], days[-1]))) if days else 'nothing measured')
            + (f'; commits: {", ".join(commits)}' if commits else ''))


def write(every, out, quick, those=()):
    """every: the Results; those: the works that they are about"""
    sections = [section(result, out) for result in every]
    kind = 'with --quick: too short to judge by' if quick else 'a full run'
    results.write(os.path.join(out, 'index.html'), ''.join([
        '<!DOCTYPE html><html lang=en><meta charset=utf-8><title>ofqos: the experiments</title>',
        f'<style>{STYLE}</style><h1>Five papers, run again with ofqos, and queues for real links</h1>',
        conclusion(every, those),
        f'<p class=small>Measured {text(measured(every))}; {kind}. Below, each claim of the papers: '
        'what was published (of the real links: asked for), what this switch gave, whether it '
        'holds.</p>', sentences(every, those), *sections, '</html>']))
