# SPDX-License-Identifier: Apache-2.0
"""The experiments' harness: what is measured is kept, a run goes on, an interrupted one cleans up."""
import gzip
import json
import os
import signal
import subprocess
import sys
import types

import pytest
from support import topo
from support.wait import until

HERE = os.path.join(topo.REPOSITORY, 'measure/experiments')
sys.path[:0] = [HERE, os.path.join(topo.REPOSITORY, 'measure/bench')]
import papers  # noqa: E402
from harness import answers, page, pauses, results, runner, stats  # noqa: E402
from harness.context import Failure  # noqa: E402
from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table  # noqa: E402
from papers import e2e, m, q4, works  # noqa: E402


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
    good = one.run()
    page.write(one.results, options.out, quick)
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


def test_a_sample_keeps_the_parameters_that_it_was_measured_with(tmp_path):
    """Files that were put together from several runs have one run's parameters, for all samples."""
    example = Example()
    example.full = {'n': 2, 'm': 6}
    _, found, _ = run(example, tmp_path)
    assert found['parts']['part 1']['parameters'] == {'n': 2, 'm': 6}
    example.full = found['parameters'] = {'n': 2, 'm': 3}
    results.write(str(tmp_path / 'X.json.gz'), gzip.compress(json.dumps(found).encode()))
    run(example, tmp_path)
    assert example.measured == [0, 1, 0, 1]


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


def test_a_sample_stays_valid_while_what_it_uses_is_the_same(tmp_path):
    example = Example()

    def parts(p):
        yield Part('part 0', 1, (), i=0, uses=('n',))
        yield Part('part 1', 1, (), i=1, uses=('n', 'm'))
        yield Part('part 2', 1, (), i=2, uses=('n',), form=2)
    example.parts = parts
    example.full = {'n': 3, 'm': 1}
    run(example, tmp_path)
    example.full = {'n': 3, 'm': 2, 'new': 0}
    example.form = 2                                    # of those that have none of their own
    run(example, tmp_path)
    assert example.measured == [0, 1, 2, 0, 1]
    example.full = {'n': 3, 'm': 3}
    _, result, _ = run(example, tmp_path)
    assert example.measured == [0, 1, 2, 0, 1, 1] and len(result['parts']) == 3


def test_the_page_tells_each_work_and_where_its_sentences_are_answered(tmp_path):
    work = answers.Work('Work', 'a work', ('X',), (
        answers.Topic('the first', 'X', 'claim 0'), answers.Topic('the <others>', 'X', '2')), (
        answers.Sentence('nothing is <lost>', 'X', 'claim 1'), answers.Sentence('all', 'X', 'claim'),
        answers.Sentence('elsewhere', doc='reference/qos-extension.md'), answers.Sentence('later', 'Y', 'none')))
    run(Example(), tmp_path)
    result = results.Result(Example(), False, str(tmp_path))
    result.judge()
    page.write([result], str(tmp_path), False, (work,))
    html = (tmp_path / 'index.html').read_text()
    assert '<b>Work</b> holds: the first; <span class=fails>does not hold, or not wholly</span>: ' \
        'the &lt;others&gt; (<a href="#X-3">X-3</a>).' in html
    assert 'id=X-2><td>claim 1' in html
    assert 'nothing is &lt;lost&gt;</td><td><a href="#X-2">X-2</a> </td><td class=fails>' in html
    assert '<a href="../reference/qos-extension.md">docs/reference/qos-extension.md</a>' in html
    assert '<a href="#Y">' not in html


def test_every_sentence_has_an_answer():
    known = {e.id: [c.claim for c in e.claims(e.parameters(False))] for e in papers.every()}
    assert sorted(i for work in works.WORKS for i in work.ids) == sorted(known)
    for work in works.WORKS:
        for i in work.ids:
            for claim in known[i]:
                assert any(t.id == i and answers.concerns(t, claim) for t in work.topics), f'no topic: {claim}'
        for s in work.sentences:
            assert s.id or s.doc, s.text
            if s.doc:
                assert os.path.exists(os.path.join(topo.REPOSITORY, 'docs', s.doc)), s.doc
        for s in (*work.topics, *work.sentences):
            assert not s.claim or any(answers.concerns(s, claim) for claim in known[s.id]), s.text


@pytest.mark.parametrize('rate, paused, excused', [
    (9.71, 0, True), (9.69, 0, False), (9.0, 0.06, False), (9.0, 0.08, True), (10.29, 0, True),
    (10.31, 0.5, False), (0, 1, True)])
def test_a_pause_excuses_what_could_not_be_sent_in_it_and_no_more(rate, paused, excused):
    assert (q4.off(rate, 10, 1.0, paused) == 0) == excused


def test_pauses_count_as_far_as_they_lie_within():
    assert pauses.overlap([(0.5, 1.5), (1.75, 2.0), (2.5, 4)], 1, 3) == 1.25


@pytest.mark.parametrize('values, wanted', [
    ([1, 3], '2.00 ± 12.71'), ([54.0, 53.8, 54.1], '53.97 ± 0.38'), ([5], '5.00'),
    (list(range(101)), '50.00 ± 5.78')])
def test_averages_have_students_interval(values, wanted):
    assert stats.plus_minus(values) == wanted


@pytest.mark.parametrize('n, low, high', [(3, 1, 3), (6, 1, 6), (9, 2, 8), (20, 6, 15),
                                          (40, 14, 27)])
def test_a_median_has_the_sign_tests_interval(n, low, high):
    assert stats.middle(range(1, n + 1)) == ((n + 1) / 2, low, high)


def test_an_uneven_split_is_told_run_by_run():
    judged = m.M.even([[9.1, 0.5], [8.9, 0.7], [4.0, 5.4]])
    assert not judged.holds
    assert judged.why == ('the flow that begins first has more 2 times of 3: 9.10 and 0.50, '
                          '8.90 and 0.70, 4.00 and 5.40 Mbit/s')
    assert m.M.even([[4.8, 4.7], [4.7, 4.8]]).holds


def test_looks_at_the_end_that_took_too_long_lose_nothing():
    """Looks whose answers came too late are empty, more than ten in a row at the end as well"""
    queues = dict(enumerate(e2e.RESERVED, 1))
    paths = {name: [(sink, e2e.HOST)] for name, (_, sink, _, _) in e2e.RESERVED.items()}
    rows = [{(sink, e2e.HOST, queue): (t / 10, t / 10 * e2e.RESERVED[name][2] / 8)
             for queue, name in queues.items() for sink in [e2e.RESERVED[name][1]]}
            for t in range(60)]
    looker = types.SimpleNamespace(rows=rows + [{}] * 20, queues=queues, paths=[(0.0, paths)],
                                   over=[], start=0)
    found = e2e.E2E().sample(looker, 3.0, [(4.0, 1)], types.SimpleNamespace(get=lambda _: []),
                             types.SimpleNamespace(within=lambda *_: 0.0))
    assert {row[1] for row in found['windows']} == {3}
    assert all(row[3] == pytest.approx(1) for row in found['windows'])
    assert all(len(line) == 4 for line in found['lines'].values())


@pytest.mark.long
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
        until(lambda: any(len(inside(n)) >= 2 for n in names()), 'iperf3 runs', 120)
        processes = [pid for name in names() for pid in inside(name)]
        child.send_signal(number)
        out, _ = child.communicate(timeout=60)
    assert child.returncode == 1 and f'interrupted by {number.name}' in out, out
    assert not names()
    until(lambda: not [pid for pid in processes if os.path.exists(f'/proc/{pid}')],
         'all processes have ended')


def test_a_plot_is_svg_where_that_is_asked_for(tmp_path):
    pytest.importorskip('matplotlib', reason='matplotlib is not installed (scripts/install-deps experiments)')
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
