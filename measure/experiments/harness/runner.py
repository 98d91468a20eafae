# SPDX-License-Identifier: Apache-2.0
"""Runs experiments part after part, in this kernel or the test kernel; keeps what they find."""
import functools
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import traceback

from support import tc
from support.topo import REPOSITORY

from . import results
from .context import Context, Failure, Interrupted, end
from .progress import Progress

TESTKERNEL = os.path.join(REPOSITORY, 'tests/testkernel/uml')
BOOT = 12             # seconds: the test kernel's start and Python's
INSIDE = '.testkernel.json'
FAILURES = (Failure, AssertionError, OSError, subprocess.SubprocessError)
SAY = '@say '         # before what a part inside the test kernel says


def build(directory):
    """A release build, made when it isn't there"""
    def run(*words):
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise Failure(f"{' '.join(words)}\n{done.stdout[-3000:]}")
    if not os.path.exists(f'{directory}/build.ninja'):
        run('meson', 'setup', directory, REPOSITORY, '--buildtype=release', '-Dtests=disabled')
    run('ninja', '-C', directory)


def reason(error):
    """Why a part has failed; where it is none of the expected reasons, with the place"""
    if isinstance(error, FAILURES):
        return str(error) or repr(error)
    return ''.join(traceback.format_exception(error)[-3:]).strip()


@functools.lru_cache(None)
def kernel_has(kind):
    """A scheduler, or SCTP"""
    if kind != 'sctp':
        return tc.has_scheduler(kind)
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP).close()
        return True
    except OSError:
        return False


def lacking(part):
    return [kind for kind in part.needs if not kernel_has(kind)]


def measure(experiment, p, quick, part, say):
    """A part, here -> as results.measured"""
    started, load = time.monotonic(), os.getloadavg()
    with Context(p, quick, say) as ctx:
        sample = experiment.run(ctx, part)
    return results.measured(sample, started, load)


# ------------------------------------------------------------------------------- the test kernel

def measure_inside(experiment, part, options, say):
    """The same in the test kernel, by a run of measure/experiments/run in there"""
    if os.environ.get('TESTKERNEL') or not shutil.which('linux.uml'):
        raise Failure('the kernel has no ' + ', '.join(lacking(part)) + '; there is no test kernel '
                      'either (package user-mode-linux)')
    path = os.path.join(options.out, INSIDE)
    if os.path.exists(path):
        os.unlink(path)
    command = [TESTKERNEL, '--timeout', str(round(part.seconds * 10 + 180)), '--rw', options.out,
               '--rw', options.build, '--', sys.executable,
               os.path.join(REPOSITORY, 'measure/experiments/run'), experiment.id, '--out', options.out,
               '--build', options.build, '--part', part.name] + ['--quick'] * options.quick
    child = subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             start_new_session=True)
    said = []
    try:
        for line in child.stdout:
            if line.startswith(SAY):
                say('in the test kernel: ' + line[len(SAY):].strip())
            else:
                said.append(line)
        child.wait()
    finally:
        end(child, 30)
    if child.returncode:
        raise Failure('in the test kernel: ' + ''.join(said[-20:]).strip()[-1500:])
    with open(path) as f:
        found = json.load(f)
    os.unlink(path)
    return found


def run_inside(experiment, quick, out, name):
    """What runs in there: one part, its sample to a file"""
    p = experiment.parameters(quick)
    part = next(part for part in experiment.parts(p) if part.name == name)
    try:
        found = measure(experiment, p, quick, part, lambda text: print(SAY + text, flush=True))
    except Exception as e:                   # pylint: disable=broad-except
        sys.exit(reason(e))
    results.write(os.path.join(out, INSIDE), json.dumps(found))


# ------------------------------------------------------------------------------------------ runs

def expected(part):
    return part.seconds + (BOOT if lacking(part) else 0)


class Runner:
    """options: out, build, quick, fresh"""

    def __init__(self, experiments, options):
        self.options = options
        self.results = [results.Result(e, options.quick, options.out, options.fresh)
                        for e in experiments]
        self.total = sum(expected(part) for r in self.results for part in r.missing())

    def run(self):
        """-> was all measured that can be?  Samples and verdicts are in files after each part; the page
        is the caller's: drawing it takes minutes."""
        good = True
        with Progress(self.total) as progress:
            for result in self.results:
                good &= self.run_one(result, progress)
                result.data.update(versions=results.versions(), machine=results.machine())
                result.judge()
                tell(result, progress)
        return good

    def run_one(self, result, progress):
        if result.begun_anew:
            progress.note(f'{result.experiment.id}: the parameters are others: begins anew')
        elif result.data['parts'] and result.missing():
            progress.note(f"{result.experiment.id}: goes on, {len(result.data['parts'])} of "
                          f'{len(result.todo)} parts are measured already')
        good = True
        for part in result.missing():
            progress.begin(f'{result.experiment.id} {part.name}', expected(part))
            try:
                if lacking(part):
                    found = measure_inside(result.experiment, part, self.options, progress.say)
                else:
                    found = measure(result.experiment, result.p, self.options.quick, part,
                                    progress.say)
                found['sample'] = result.experiment.evaluate(result.p, part, found['sample'])
                result.add(part, found)
            except Exception as e:           # pylint: disable=broad-except
                why = reason(e)
                progress.note(f'{result.experiment.id} {part.name}: {why}')
                result.fail(part, why)
                good = False
            progress.end()
        return good


def tell(result, progress):
    progress.note(f'\n{result.experiment.id}  {result.experiment.title}  '
                  f'[{result.experiment.source}]')
    for v in result.data['verdicts']:
        progress.note(f"  {v['verdict']:20} {v['claim']}")
        if v['ours'] is not None:
            progress.note(f"{'':22} published {v['published']}, ours {v['ours']}")
        if v['why']:
            progress.note(f"{'':22} {v['why']}")


__all__ = ['Failure', 'Interrupted', 'Runner', 'build', 'run_inside']
