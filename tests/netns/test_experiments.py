# SPDX-License-Identifier: Apache-2.0
"""The experiments' harness: what is measured is kept, a run goes on, an interrupted one cleans up."""
import json
import os
import signal
import subprocess
import sys
import types

import pytest
from support import topo
from support.qostree import soon

HERE = os.path.join(topo.REPOSITORY, 'experiments')
sys.path[:0] = [HERE, os.path.join(topo.REPOSITORY, 'bench')]
from harness import page, results, runner  # noqa: E402
from harness.context import Failure  # noqa: E402
from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table  # noqa: E402


class Example(Experiment):
    id, title, source = 'X', 'an <example>', 'a work'
    full = {'n': 3}
    quick = {'n': 2}

    def __init__(self):
        self.measured, self.broken = [], set()

    def parts(self, p):
        for i in range(p['n']):
            yield Part(f'part {i}', 1, (), i=i)

    def run(self, ctx, part):
        if part.i in self.broken:
            raise Failure('no such luck')
        self.measured.append(part.i)
        return {7: part.i * ctx.p['n']}

    def claims(self, p):
        for i in range(p['n']):
            yield Claim(f'claim {i}', 'said', lambda s, k=i: Judged(
                f"{s[f'part {k}']['7']} things", s[f'part {k}']['7'] < 3))

    def tables(self, samples, p):
        yield Table('sums', ('a',), [(samples['part 0']['7'],)])


def run(example, out, quick=False, fresh=False):
    """-> (was all measured?, the result, what it says)"""
    options = types.SimpleNamespace(out=str(out), build=topo.build_directory(), quick=quick,
                                    fresh=fresh)
    one = runner.Runner([example], options)
    good = one.run(lambda _: page.write(one.results, options.out, quick))
    return good, results.read(out / 'X.json.gz'), (out / 'index.html').read_text()


def verdicts(result):
    return [(v['ours'], v['holds'], v['verdict']) for v in result['verdicts']]


def test_claims_are_judged_by_the_samples(tmp_path):
    good, result, html = run(Example(), tmp_path)
    assert good
    assert verdicts(result) == [('0 things', True, 'holds'), ('3 things', False, 'does not hold'),
                                ('6 things', False, 'does not hold')]
    assert result['parameters'] == {'n': 3} and result['parts']['part 2']['sample'] == {'7': 6}
    assert {'kernel', 'tcp', 'at', 'load_before', 'seconds'} <= result['parts']['part 2'].keys()
    assert result['versions']['kernel'] == os.uname().release
    assert 'an &lt;example&gt;' in html and 'does not hold' in html and 'sums' in html


def test_a_run_goes_on_with_what_is_missing(tmp_path, capsys):
    example = Example()
    example.broken = {1}
    good, result, html = run(example, tmp_path)
    assert not good and example.measured == [0, 2]
    assert verdicts(result)[1] == (None, None, 'not measured')
    assert result['verdicts'][1]['why'] == 'no such luck' and 'no such luck' in html
    example.broken = set()
    good, result, _ = run(example, tmp_path)
    assert good and example.measured == [0, 2, 1] and not result['failed']
    assert '2 of 3 parts are measured already' in capsys.readouterr().out


def test_a_sample_without_what_a_table_wants_does_not_end_the_run(tmp_path):
    example = Example()
    example.tables = lambda samples, p: (Table('sums', ('a',), [(samples[f'part {i}']['8'],)])
                                         for i in range(p['n']))
    good, result, html = run(example, tmp_path)
    assert good and verdicts(result)[0] == ('0 things', True, 'holds')
    assert "No table: the samples give KeyError(&#x27;8&#x27;)" in html


def test_the_page_begins_with_the_conclusion(tmp_path):
    _, _, html = run(Example(), tmp_path)
    first = html[:html.index('<h2')]
    assert '1 of 3 claims hold, 2 do not.' in first
    assert '<td>claim 0</td><td>said</td><td>0 things</td>' in first       # the headline
    assert 'claim 1: <span class=fails>3 things' in first and 'claim 2' in first


def test_samples_of_a_changed_tree_are_known(tmp_path):
    example = Example()
    run(example, tmp_path)
    result = results.Result(example, False, str(tmp_path))
    for part in result.data['parts'].values():
        part['commit'] = 'abc1234'
    assert not result.changed()
    result.data['parts']['part 1']['commit'] = 'abc1234-dirty'
    assert result.changed()


@pytest.mark.parametrize('change', [{'quick': True}, {'fresh': True}])
def test_other_parameters_begin_anew(tmp_path, change):
    example = Example()
    run(example, tmp_path)
    _, result, _ = run(example, tmp_path, **change)
    n = result['parameters']['n']
    assert example.measured == [0, 1, 2, *range(n)] and len(result['parts']) == n


def test_a_form_of_samples_that_is_no_more_begins_anew(tmp_path):
    example = Example()
    run(example, tmp_path)
    example.form = 2
    run(example, tmp_path)
    assert example.measured == [0, 1, 2] * 2


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_nothing(tmp_path, number):
    command = [sys.executable, os.path.join(HERE, 'run'), 'Q4', '--quick', '--no-install', '--out',
               str(tmp_path), '--build', topo.build_directory()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as child:
        prefix = f'oq{child.pid}x'

        def inside(name):
            return topo.sh('ip', 'netns', 'pids', name, check=False).split()

        def names():
            return [line.split()[0] for line in topo.sh('ip', 'netns').splitlines()
                    if line.startswith(prefix)]
        soon(lambda: any(len(inside(n)) >= 2 for n in names()), 'iperf3 runs', 120)
        processes = [pid for name in names() for pid in inside(name)]
        child.send_signal(number)
        out, _ = child.communicate(timeout=60)
    assert child.returncode == 1 and f'interrupted by {number.name}' in out, out
    assert not names()
    soon(lambda: not [pid for pid in processes if os.path.exists(f'/proc/{pid}')],
         'all processes have ended')


def test_a_plot_is_svg_where_that_is_asked_for(tmp_path):
    class Drawn(Example):
        def figures(self, samples, p):
            yield Figure('line', 'a line', (2, 1), lambda fig: fig.subplots().plot(
                [samples['part 0']['7'], samples['part 1']['7']]))
    example = Drawn()
    _, _, html = run(example, tmp_path)
    assert 'data:image/png;base64,' in html and (tmp_path / 'X-line.png').exists()
    example.svg = True
    _, _, html = run(example, tmp_path)
    assert 'data:image/svg+xml;base64,' in html
    first = (tmp_path / 'X-line.svg').read_text()
    run(example, tmp_path)                      # the same samples, the same bytes
    assert first.startswith('<?xml') and (tmp_path / 'X-line.svg').read_text() == first
