# SPDX-License-Identifier: Apache-2.0
"""What was tried, as a file of lines of JSON: several processes add to it, and a later run goes on with it."""
import collections
import fcntl
import hashlib
import json
import os


def spread(numbers):
    """The numbers in an order of which every beginning covers them evenly: by the reversed bits of their places"""
    numbers = sorted(numbers)
    bits = max(len(numbers) - 1, 1).bit_length()
    return [numbers[i] for i in sorted(range(len(numbers)), key=lambda i: int(f'{i:0{bits}b}'[::-1], 2))]


def hash_of(path):
    with open(path, 'rb') as f:
        return hashlib.sha256(f.read()).hexdigest()[:16]


class Record:
    """Lines: {"program": hash}; {"step", "class", "seen", "order"}; {"step", "class", "n", "how"}, where how is
    refused, done, lost, unharmed (there was no Nth any more) or defect; "excused": OpenSSL leaked at its first use"""

    def __init__(self, path, program):
        self.path, before = path, []
        if os.path.exists(path) and os.path.getsize(path):
            before = self.rows()
            if before[0].get('program') != hash_of(program):
                raise SystemExit(f'{path} is of another program than {program}: its Ns are other ones')
        self.file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o644)
        self.tried = {(r['step'], r['class'], r['n']) for r in before if 'n' in r}
        if not before:
            self.add(program=hash_of(program))

    def add(self, **row):
        os.write(self.file, (json.dumps(row) + '\n').encode())

    def plan(self, step, kind, make):
        """-> how many there are, and the order of those to be tried: as the first who asks has made it"""
        with open(self.path, 'rb') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for r in self.rows():
                if 'order' in r and (r['step'], r['class']) == (step, kind):
                    return r['seen'], r['order']
            seen, order = make()
            self.add(**{'step': step, 'class': kind, 'seen': seen, 'order': order})
            return seen, order

    def rows(self):
        with open(self.path, encoding='utf-8') as f:
            return [json.loads(line) for line in f if line.endswith('\n')]

    def sums(self):
        """-> {(step, class): Counter of how, with seen and planned}"""
        found = collections.defaultdict(collections.Counter)
        for r in self.rows()[1:]:
            key = r['step'], r['class']
            if 'n' in r:
                found[key][r['how']] += 1
                found[key]['excused'] += r.get('excused', False)
            else:
                found[key].update(seen=r['seen'], planned=len(r['order']))
        return found


HOW = 'refused', 'done', 'lost', 'defect'


def tried(counts):
    return sum(counts[how] for how in HOW)


def told(key, counts):
    """One step and class in a sentence"""
    n, last = tried(counts), counts['planned']
    said = f'{key[0]}, {key[1]}: {n:,} faults'
    if last:
        said += f' of {counts["seen"]:,}' + (f', cut short: {last:,} were to be tried, evenly spread'
                                           if n + counts['unharmed'] < last else '')
    excused = f' ({counts["excused"]:,} with a leak of OpenSSL\'s at its first use)' if counts['excused'] else ''
    return said + (': ' + ', '.join(f'{counts[how]:,} {how}' for how in HOW if counts[how]) if n else '') + excused


def total(sums):
    all_of = sum(sums.values(), collections.Counter())
    return (f'{tried(all_of):,} faults: {all_of["refused"]:,} refused, {all_of["done"]:,} done all the same, '
            f'{all_of["lost"]:,} lost the connection, {all_of["defect"]:,} with a defect')
