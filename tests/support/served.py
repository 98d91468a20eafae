# SPDX-License-Identifier: Apache-2.0
"""A service of the package as a process: it prints `listening at ...`, and its log is looked at in the end."""
import os
import shutil
import subprocess
import sys
import tempfile
import weakref

from .topo import REPOSITORY

PACKAGE = os.path.join(REPOSITORY, 'controllers/python')


def run(module, *words, env=None):
    """The command, to its end"""
    return subprocess.run([sys.executable, '-m', module, *words], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                          env={**os.environ, 'PYTHONPATH': PACKAGE, **(env or {})})


class Served:
    """`module serve` with `options`; it may be started again when it has ended.  port: where it listens"""
    module = ''

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix=self.module.replace('.', '-') + '-')
        weakref.finalize(self, shutil.rmtree, self.directory, True)     # it may be started again until then
        self.options = []

    def __enter__(self):
        self.log = open(os.path.join(self.directory, 'log'), 'w+')
        self.process = subprocess.Popen([sys.executable, '-m', self.module, 'serve', *self.options],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env={**os.environ, 'PYTHONPATH': PACKAGE})
        line = self.process.stdout.readline()
        assert line.startswith('listening at'), self.said()
        self.where = line.split()[-1]
        end = self.where.rstrip('/').rpartition(':')[2]
        self.port = int(end) if end.isdigit() else 0            # 0: it has none of its own
        return self

    def said(self):
        with open(self.log.name) as f:
            return f.read()

    def __exit__(self, *_):
        self.process.terminate()
        try:
            assert self.process.wait(20) == 0, self.said()
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()
            self.log.close()
        assert 'Traceback' not in self.said(), self.said()
