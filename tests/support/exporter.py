# SPDX-License-Identifier: Apache-2.0
"""ofqos-exporter (controllers/python/ofqos/exporter) as a process."""
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

from .topo import REPOSITORY

PACKAGE = os.path.join(REPOSITORY, 'controllers/python')


class Exporter:
    """The program; its url."""

    def __init__(self, *words):
        self.process = subprocess.Popen([sys.executable, '-m', 'ofqos.exporter', '--listen', '127.0.0.1:0', *words],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env={**os.environ, 'PYTHONPATH': PACKAGE})

    def __enter__(self):
        line = self.process.stdout.readline()
        assert line.startswith('listening at'), self.process.stderr.read()
        self.port = int(line.rsplit(':', 1)[1])
        self.url = f'http://127.0.0.1:{self.port}'
        return self

    def get(self, path='/metrics', context=None, **headers):
        """Status, type, text"""
        url = (self.url.replace('http', 'https') if context else self.url) + path
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60,
                                        context=context) as answer:
                return answer.status, answer.headers['Content-Type'], answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.headers['Content-Type'], e.read().decode()

    def up(self):
        """What it tells, once a switch is there"""
        end = time.monotonic() + 60
        while True:
            text = self.get()[2]
            if re.search(r'^ofqos_up\{.*\} 1$', text, re.M):
                return text
            assert time.monotonic() < end, text
            time.sleep(0.1)

    def __exit__(self, *_):
        self.process.terminate()
        try:
            assert self.process.wait(30) == 0
            said = self.process.stderr.read()       # of switches that come later, or go
            assert all(line.endswith('; it is tried again and again') for line in said.splitlines()), said
        finally:
            self.process.kill()
            self.process.stdout.close()
            self.process.stderr.close()
