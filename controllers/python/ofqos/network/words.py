# SPDX-License-Identifier: Apache-2.0
"""What commands answer, for people."""
from __future__ import annotations

import time
from typing import Any, Dict

_SHOWN = 20                     # names in a line


def names(found: Any) -> str:
    rows = list(found)
    return ' '.join(rows[:_SHOWN]) + (f' and {len(rows) - _SHOWN} more' if len(rows) > _SHOWN else '')


def show(command: str, found: Dict[str, Any]) -> None:
    {'check': show_check, 'status': show_status, 'plan': show_plan, 'diff': show_plan,
     'apply': show_done, 'rollback': show_done}[command](found)


def show_check(found: Dict[str, Any]) -> None:
    print(f"{found['file']} is right: revision {found['revision']}, {found['switches']} switches")


def show_done(found: Dict[str, Any]) -> None:
    print(f"revision {found['revision']} is in force: {len(found['changed'])} switches changed, "
          f"{found['same']} were so, in {found['seconds']:.2f} s")
    show_away(found)


def show_away(found: Dict[str, Any]) -> None:
    if found['away']:
        print(f"away, they get it when they come: {names(found['away'])}")


def show_plan(found: Dict[str, Any]) -> None:
    """Switches with the same steps are shown together."""
    groups: Dict[Any, Any] = {}
    for row in found['switches']:
        groups.setdefault(tuple(row['steps']), []).append(row['name'] + ('*' if row['canary'] else ''))
    for steps, who in groups.items():
        print(f"{names(who)}: {'nothing to change' if not steps else f'{len(steps)} steps'}")
        for step in steps:
            print(f'    {step}')
    if any(row['canary'] for row in found['switches']):
        print('* gets it first')
    show_away(found)


def show_status(found: Dict[str, Any]) -> None:
    print(f"revision {found['revision']} ({found['file']}), " +
          ('in force here' if found['active'] else f"standing by: {found['why']}") +
          (f", revision {found['pending']} waits for switches" if found['pending'] else '') +
          (', a step is being made' if found['step'] else ''))
    counts: Dict[str, int] = {}
    for row in found['switches']:
        counts[row['state']] = counts.get(row['state'], 0) + 1
        if row['state'] not in ('same', 'away') or row['broken']:
            print(f"{row['name']}: {row['state']}{': ' + row['why'] if row['why'] else ''}")
            for line in row['steps']:
                print(f'    missing: {line}')
            for line in row['broken']:
                print(f'    promise broken: {line}')
    away = [row['name'] for row in found['switches'] if row['state'] == 'away']
    print(', '.join(f'{count} {state}' for state, count in sorted(counts.items())) or 'no switches')
    if away:
        print(f'away: {names(away)}')
    for one in found['revisions'][:-1]:
        print(f"before: revision {one['revision']}, {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(one['at']))}")
