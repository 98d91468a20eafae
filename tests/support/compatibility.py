# SPDX-License-Identifier: Apache-2.0
"""tests/compatibility: what docs/reference/compatibility.md promises, as lists."""
import os
import re

DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../compatibility')
SAVED = os.path.join(DIRECTORY, '0.2.0')        # files that this version wrote or read


def lines(name, between=': ?'):
    """-> [(what, its words)]"""
    with open(os.path.join(DIRECTORY, name), encoding='utf-8') as f:
        return [re.split(between, line.rstrip('\n'), maxsplit=1) for line in f if not line.startswith('#')]


def words(name):
    """-> {what: {word}}"""
    return {what: set(rest.split()) for what, rest in lines(name)}


def keys(value, path=''):
    """The keys of an answer in JSON, such as flows[].match.in_port"""
    if isinstance(value, dict):
        return {k for key, v in value.items() for k in keys(v, f'{path}.{key}' if path else key)}
    if isinstance(value, list):
        return {k for v in value for k in keys(v, path + '[]')}
    return {path}
