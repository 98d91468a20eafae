# SPDX-License-Identifier: Apache-2.0
"""What an experiment has found, as compressed JSON beside its plots; a run that goes on reads it
again."""
import functools
import gzip
import json
import os
import platform
import subprocess
import time

from support.topo import REPOSITORY, binary

from .congestion import congestion
from .experiment import UNUSABLE, Missing, Samples, reason

HOLDS = {True: 'holds', False: 'does not hold', None: 'not measurable here'}


def said(*words, lines=1):
    """What a program prints, its first lines; '' when there is none"""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ''
    return '\n'.join(done.stdout.splitlines()[:lines]) if not done.returncode else ''


def from_proc(path, key):
    with open(path) as f:
        return next((line.partition(':')[2].strip() for line in f if line.startswith(key)), '')


def machine():
    return {'cpu': from_proc('/proc/cpuinfo', 'model name'), 'cpus': os.cpu_count(),
            'memory': from_proc('/proc/meminfo', 'MemTotal'), 'architecture': platform.machine()}


@functools.lru_cache(None)
def commit():
    """What is measured; '...-dirty' where files differ from the commit: not to be published"""
    return said('git', '-C', REPOSITORY, 'describe', '--always', '--dirty')


def versions():
    return {'ofqos': said(binary('datapath/ofdatapath'), '--version'),
            'commit': commit(),
            'kernel': platform.release(), 'python': platform.python_version(),
            'tc': said('tc', '-V'), 'iperf3': said('iperf3', '--version'),
            'Open vSwitch': said('ovs-vswitchd', '--version')}


def kernel():
    """Of this kernel, as a sample tells where it was measured"""
    return platform.release() + (' (test kernel, User-Mode Linux)'
                                 if os.environ.get('TESTKERNEL') else '')


class Result:
    """One experiment's file: {id}.json.gz in the output directory."""

    def __init__(self, experiment, quick, out, fresh=False):
        self.experiment, self.quick = experiment, quick
        self.p = json.loads(json.dumps(experiment.parameters(quick)))
        self.path = os.path.join(out, f'{experiment.id}.json.gz')
        self.todo = list(experiment.parts(self.p))
        self.data = {'id': experiment.id, 'title': experiment.title,
                     'source': experiment.source, 'form': experiment.form, 'quick': quick,
                     'parameters': self.p,
                     'parts': {}, 'failed': {}}
        self.begun_anew = False
        if not fresh:
            self.take_up()

    def take_up(self):
        """What an earlier run has measured, of parts whose parameters are the same"""
        try:
            old = read(self.path)
        except (OSError, EOFError, ValueError):
            return
        self.data['parts'] = {part.name: old['parts'][part.name] for part in self.todo
                              if part.name in old['parts'] and self.valid(part, old)}
        self.begun_anew = bool(old.get('parts')) and not self.data['parts']

    def valid(self, part, old):
        """Is the part's sample of an earlier run what it would measure now?"""
        # A sample has its own since they were found to differ from the file's, which others had joined.
        before = old['parts'][part.name].get('parameters', old['parameters'])
        if part.uses is None:
            same = before == self.p
        else:
            same = all(name in before and before[name] == self.p[name] for name in part.uses)
        return same and old['quick'] == self.quick and \
            old['parts'][part.name].get('form', old.get('form')) == self.form(part)

    def form(self, part):
        return self.experiment.form if part.form is None else part.form

    def missing(self):
        return [part for part in self.todo if part.name not in self.data['parts']]

    def changed(self):
        """Was any part measured with changes that no commit has?"""
        return any(m.get('commit', '-dirty').endswith('-dirty')
                   for m in self.data['parts'].values())

    def add(self, part, found):
        """found: as `measured` gives it"""
        self.data['failed'].pop(part.name, None)
        used = self.p if part.uses is None else {name: self.p[name] for name in part.uses}
        self.data['parts'][part.name] = {**found, 'form': self.form(part), 'parameters': used}
        self.save()

    def fail(self, part, why):
        self.data['failed'][part.name] = why
        self.save()

    def samples(self):
        return Samples({name: m['sample'] for name, m in self.data['parts'].items()},
                       self.data['failed'])

    def judge(self):
        """-> verdicts, kept in the file as well"""
        samples, verdicts = self.samples(), []
        for claim in self.experiment.claims(self.p):
            try:
                ours, holds, why = claim.judge(samples)
                holds = None if holds is None else bool(holds)
                verdict = HOLDS[holds]
            except Missing as e:
                ours, holds, verdict, why = None, None, 'not measured', reason(e)
            except UNUSABLE as e:
                ours, holds, verdict, why = None, None, 'not judged', reason(e)
            verdicts.append({'claim': claim.claim, 'published': claim.published, 'ours': ours,
                             'holds': holds, 'verdict': verdict, 'why': why})
        self.data['verdicts'] = verdicts
        self.save()
        return verdicts

    def save(self):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        packed = json.dumps(self.data, separators=(',', ':')).encode()
        write(self.path, gzip.compress(packed, mtime=0))     # the same samples, the same bytes


def read(path):
    with gzip.open(path) as f:
        return json.load(f)


def write(path, text):
    """The whole file or, when it is interrupted, the one from before"""
    with open(path + '.new', 'wb') as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    os.replace(path + '.new', path)


def measured(sample, started, load):
    """A sample, as it will be read again, with where and when it was taken"""
    return {'sample': json.loads(json.dumps(sample)), 'kernel': kernel(),
            'commit': commit(), 'tcp': congestion(), 'seconds': round(time.monotonic() - started, 3),
            'at': time.strftime('%Y-%m-%dT%H:%M:%S%z'), 'load_before': load[0],
            'load_after': os.getloadavg()[0]}
