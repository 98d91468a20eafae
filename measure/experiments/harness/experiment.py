# SPDX-License-Identifier: Apache-2.0
"""What an experiment is.

A module in papers/ has one, as EXPERIMENT; papers/__init__.py names the module.

    class Q2(Experiment):
        id, title = 'Q2', 'What a queue costs'
        source = 'QoSFlow, figure 3'
        full = {'seconds': 10, 'switches': [1, 2, 3]}
        quick = {'seconds': 2}                     # what differs from full

        def parts(self, p):                        # what is measured, in order
            for n in p['switches']:
                yield Part(f'{n} switches', 2 * p['seconds'], n=n)

        def run(self, ctx, part):                  # one part -> its sample, anything JSON
            line = ctx.enter(Line(part.n))
            return {'bps': ...}

        def claims(self, p):                       # the source's, and what ours must show
            yield Claim('one switch: ...', '54 Mbit/s', lambda s: Judged('60 Mbit/s', True))

        def tables(self, samples, p):              # what the page shows beside the verdicts
            yield Table('...', ('switches', 'Mbit/s'), [(1, 54.1), ...])

        def figures(self, samples, p):             # plots, laid out as the source's
            yield Figure('capacity', 'As figure 3', (6, 4), lambda fig: ...)

`samples` is {part's name: its sample}.  A claim, table or figure that asks for a part that is not
there (it failed, or can't be measured on this machine) is told as not measured, with the reason.
Every part stands for itself: it makes its network and leaves nothing, so that a run that was
interrupted goes on with the next one.
"""
from collections import namedtuple

# ours: text or number; holds: True, False, or None (not measurable here); why: what explains it
Judged = namedtuple('Judged', 'ours holds why', defaults=('',))
# judge(samples) -> Judged
Claim = namedtuple('Claim', 'claim published judge')
Table = namedtuple('Table', 'title head rows')
# draw(figure) fills a matplotlib figure of this size in inches
Figure = namedtuple('Figure', 'name caption size draw')


class Part:
    """name: of the sample; seconds: about how long; needs: schedulers of the kernel; uses: names of
    the parameters that the sample depends on, None for all: it stays valid when others change; form:
    of its sample, where that is not the experiment's; more words are the experiment's own, as
    attributes."""

    def __init__(self, name, seconds, needs=('htb',), uses=None, form=None, **own):
        self.name, self.seconds, self.needs = name, seconds, tuple(needs)
        self.uses, self.form = uses, form
        self.__dict__.update(own)


class Missing(Exception):
    """A part has no sample; says why."""


# What a claim, a table or a figure raises when a sample is there, but not as it should be
UNUSABLE = (ArithmeticError, LookupError, ValueError)


def reason(error):
    """Why a claim is not judged, or a table or a figure not there: Missing, or one of UNUSABLE"""
    return str(error) if isinstance(error, Missing) else f'the samples give {error!r}'


class Samples(dict):
    """{part's name: sample}; what is not there raises Missing with the reason."""

    def __init__(self, samples, reasons):
        super().__init__(samples)
        self.reasons = reasons

    def __missing__(self, name):
        raise Missing(self.reasons.get(name, f'{name} was not measured'))


class Experiment:
    id = ''
    title = ''
    source = ''          # the paper, and the figure or table of it
    set_up = ''          # a paragraph: what is built, what is sent, what is measured
    differs = ''         # a paragraph: where the set-up is not the source's, and why
    headline = 0         # the claim that the page begins with
    form = 1             # of the samples: another number when `run` gives something else
    svg = False          # plots as SVG instead of PNG: few points, and lines that stay sharp
    full = {}            # parameters, JSON
    quick = {}           # those that differ with --quick

    def parameters(self, quick):
        return {**self.full, **(self.quick if quick else {})}

    def parts(self, p):
        raise NotImplementedError

    def run(self, ctx, part):
        raise NotImplementedError

    def evaluate(self, p, part, sample):
        """What is worked out from a sample, in this kernel: the test kernel computes slowly.
        -> the sample that is kept"""
        return sample

    def claims(self, p):
        raise NotImplementedError

    def tables(self, samples, p):
        return ()

    def figures(self, samples, p):
        return ()
