# SPDX-License-Identifier: Apache-2.0
"""Which rows of a view's lists a page shows: a view of 10,000 queues is as large as one of 60."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple, TypeVar

ROWS, MOST = 60, 100            # rows of a list, and as many as may be asked for
FIND_MOST = 64
FAR = 1 << 20
SORTS: Mapping[str, Sequence[str]] = {
    'network': ('name', 'queues', 'receives', 'sends'), 'switch': ('port', 'name', 'queues', 'receives', 'sends', 'dropped'),
    'port': ('tree', 'name', 'rate', 'waits', 'delay', 'dropped'), 'events': ('time',), 'subscriber': ('none',),
    **dict.fromkeys(('subscribers', 'site'), ('tree', 'name', 'down', 'up', 'rtt', 'delay', 'dropped', 'lost', 'outcome', 'changed'))}
T = TypeVar('T')


class Window(NamedTuple):
    """`first`, `second`: where the rows begin, of a view's first list (switches, ports, queues that leave) and of its
    second one (links, queues that enter); `sort` '': the list's own order."""
    first: int = 0
    second: int = 0
    rows: int = ROWS
    find: str = ''
    sort: str = ''


ALL = Window()


def _number(given: Mapping[str, Any], key: str, least: int, most: int, usual: int) -> int:
    text = str(given.get(key, usual))
    if not text.isascii() or not text.isdecimal() or not least <= int(text[:9]) <= most:
        raise ValueError(f'{key} is a number from {least} to {most}, not {text[:20]!r}')
    return int(text)


def parse(kind: str, given: Mapping[str, Any]) -> Window:
    """Of a request's words, for a view of this kind.  ValueError: what is wrong, and what is right."""
    find, sort = str(given.get('find', '')).strip().lower(), str(given.get('sort', ''))
    if len(find) > FIND_MOST:
        raise ValueError(f'find has at most {FIND_MOST} characters')
    if sort and sort not in SORTS[kind]:
        raise ValueError(f'sort is one of {", ".join(SORTS[kind])}, not {sort[:20]!r}')
    return Window(_number(given, 'first', 0, FAR, 0), _number(given, 'second', 0, FAR, 0),
                  _number(given, 'rows', 1, MOST, ROWS), find, '' if sort == SORTS[kind][0] else sort)


def cut(items: Sequence[T], first: int, window: Window) -> Dict[str, Any]:
    """The rows that are shown, how many there are, and where the rows begin: a list that became shorter has its end."""
    first = max(0, min(first, len(items) - window.rows))
    return {'rows': list(items[first:first + window.rows]), 'first': first, 'total': len(items)}


def largest(items: Sequence[T], key: Callable[[T], Any]) -> List[T]:
    """The largest first; what is not known last, in the order that it had."""
    return sorted(items, key=lambda item: -float(key(item) or 0))


# ------------------------------------------------------------------------------- differences

NOTHING = object()


def difference(old: Any, new: Any) -> Any:
    """What makes `new` of `old`: an object descends, a list of one takes the whole place, else it is the value.

    NOTHING: they are the same.  A list of the same length is an object with places as keys."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        pairs: Sequence[Tuple[Any, Any, Any]] = [(k, old[k], new[k]) for k in new]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(str(i), a, b) for i, (a, b) in enumerate(zip(old, new))]
    elif isinstance(new, (dict, list)):
        return [new]
    else:
        return NOTHING if type(old) is type(new) and old == new else new
    found = {k: made for k, a, b in pairs if (made := difference(a, b)) is not NOTHING}
    return found or NOTHING
