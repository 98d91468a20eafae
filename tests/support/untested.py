#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a run of the tests could not test, and why: one line for each reason.

    untested.py RESULTS

RESULTS is what tests/run has collected: NAME.xml of each pytest (JUnit), testlog-BUILD.txt of each
meson test, `again` (the C tests that passed in the test kernel, with what each said there), `left-out`
(a number, a tab, the reason).  A test that passed anywhere was tested.  Their sum goes into RESULTS/untested.
"""
import collections
import glob
import os
import re
import sys
import xml.etree.ElementTree as xml

FOREIGN = 'build-mips'      # what passes elsewhere has not been tested there


def black_box(results):
    """(reason, test) of each pytest that passed nowhere"""
    passed, skipped = set(), {}
    for path in sorted(glob.glob(os.path.join(results, '*.xml'))):
        try:
            cases = list(xml.parse(path).iter('testcase'))
        except xml.ParseError:          # the test kernel may have stopped in the middle of it
            continue
        for case in cases:
            test = case.get('classname'), case.get('name')
            skip = case.find('skipped')
            if skip is not None:
                skipped.setdefault(test, []).append(skip.get('message', ''))
            elif case.find('failure') is None and case.find('error') is None:
                passed.add(test)
    for test, reasons in skipped.items():
        if test not in passed:
            yield both_kernels(reasons), test


def both_kernels(reasons):
    reason = reasons[-1]
    if len(reasons) > 1 and all('is not in this kernel' in r for r in reasons):
        reason = reason.replace('is not in this kernel', 'is in neither kernel')
    return reason


def c_tests(results):
    """(reason, test) of each C test, or part of one, that was skipped"""
    again = {}
    try:
        with open(os.path.join(results, 'again'), encoding='utf-8', errors='replace') as f:
            log = f.read()
        again = dict.fromkeys(re.findall(r'^test: *(\S+)$', log, flags=re.M), [])
        again.update(skipped_in(log))
    except FileNotFoundError:
        pass
    for path in sorted(glob.glob(os.path.join(results, 'testlog-*.txt'))):
        build = re.fullmatch(r'testlog-(.*)\.txt', os.path.basename(path))[1]
        foreign = build == FOREIGN
        with open(path, encoding='utf-8', errors='replace') as f:
            for name, reasons in skipped_in(f.read()):
                if not foreign:
                    reasons = again.get(name, reasons)
                for reason in reasons:
                    yield reason + (' (MIPS)' if foreign else ''), f'C {name}'


def skipped_in(log):
    """(name, [reason, ...]) of each test of meson's log that skipped something"""
    for block in re.split(r'^test: ', log, flags=re.M)[1:]:
        name = block.partition('\n')[0].split('/')[-1].strip()
        reasons = list(dict.fromkeys(re.findall(r'^skipped: *(.*)', block, flags=re.M)))
        if not reasons and re.search(r'^result: +exit status 77', block, flags=re.M):
            reasons = [f'{name} did not say why']
        if reasons:
            yield name, reasons


def report(results):
    """The lines, and how many tests they are of"""
    tests = collections.defaultdict(set)
    for reason, test in [*black_box(results), *c_tests(results)]:
        tests[reason].add(test)
    numbers = {reason: len(t) for reason, t in tests.items()}
    try:
        with open(os.path.join(results, 'left-out'), encoding='utf-8') as f:
            for line in f:
                number, reason = line.rstrip('\n').split('\t', 1)
                numbers[reason] = numbers.get(reason, 0) + int(number)
    except FileNotFoundError:
        pass
    lines = [f'{n:5} {"test: " if n == 1 else "tests:"} {reason}'
             for reason, n in sorted(numbers.items(), key=lambda item: (-item[1], item[0]))]
    return lines, sum(numbers.values())


def main():
    lines, number = report(sys.argv[1])
    print('\n'.join(lines) or '      nothing')
    with open(os.path.join(sys.argv[1], 'untested'), 'w', encoding='ascii') as f:
        f.write(f'{number}\n')


if __name__ == '__main__':
    main()
