# SPDX-License-Identifier: Apache-2.0
"""The experiments, one module each, in the order in which they are run and shown."""
import functools
import importlib

MODULES = ('q1', 'q2', 'q3', 'q4', 'q5', 'q6', 's', 'm', 'r', 'b', 'a6', 'dsl', 'hosts', 'autorate', 'sqm',
           'af', 'names', 'e2e')


@functools.lru_cache(None)
def every():
    return [importlib.import_module(f'papers.{name}').EXPERIMENT for name in MODULES]
