# SPDX-License-Identifier: Apache-2.0
"""The page's top: each work in one sentence, and where each sentence of it is answered.

    Work('QoSFlow', 'Control of Multiple ...', ('Q1', 'Q2'),
         [Topic('what a queue costs', 'Q2')],
         [Sentence('a queue costs 18.5 % of the throughput', 'Q2', 'a queue costs 1 % or less'),
          Sentence('POX controls the switch', doc='reference/openflow10.md')])

A topic is what the page's top says of a work: it holds, or it does not, by the claims of an experiment
that contain `claim` (or one of several, divided by |).  A sentence says what the source says, in our words.  It is answered by claims
likewise, or by a document in docs/.
"""
from collections import namedtuple

Work = namedtuple('Work', 'name source ids topics sentences')
Topic = namedtuple('Topic', 'text id claim', defaults=('',))
Sentence = namedtuple('Sentence', 'text id claim doc note', defaults=('', '', '', ''))

RANK = (False, None, True)           # of several claims' verdicts the worst is told


def anchor(experiment, number):
    """Of a claim, counted from 0"""
    return f'{experiment}-{number + 1}'


def concerns(asked, claim):
    """Is the claim's text one of those that a topic or a sentence names?"""
    return any(words in claim for words in asked.claim.split('|'))


def found(asked, results):
    """asked: a topic or a sentence -> [(anchor, verdict)] of the claims that answer it"""
    result = results.get(asked.id)
    verdicts = result.data.get('verdicts', []) if result else []
    return [(anchor(asked.id, n), v) for n, v in enumerate(verdicts)
            if concerns(asked, v['claim']) and (asked.claim or isinstance(asked, Topic))]


def worst(verdicts):
    return min(verdicts, key=lambda v: RANK.index(v['holds']))


def gist(work, results):
    """-> {True: [topic's text], False: [(text, anchors that don't hold)], None: likewise}"""
    told = {True: [], False: [], None: []}
    for topic in work.topics:
        if got := found(topic, results):
            how = worst(v for _, v in got)['holds']
            told[how].append(topic.text if how else
                             (topic.text, [a for a, v in got if v['holds'] is not True]))
    return told
