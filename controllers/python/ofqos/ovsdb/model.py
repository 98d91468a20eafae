# SPDX-License-Identifier: Apache-2.0
"""What rows of QoS and Queue mean for a port, what the port has, and the requests that make the one of the
other.  Pure.

Open vSwitch's queue 0 has the packets that no queue was chosen for.  In the switch 0 is no queue, so it is the
class DEFAULT here, named as the port's default class."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ..replies import Entry
from ..request import Request, request
from ..table import ADD, CHANGE, DEL, MAX_QUEUE, ROOT_CLASS, SCHEDULERS
from ..units import Curve, Value, format_value
from .schema import Failed, constraint

DEFAULT = MAX_QUEUE             # the class of queue 0
MOST_QUEUE = DEFAULT - 1
LEAST_RATE = 12_000             # bit/s of a queue without a min-rate: 1,500 bytes a second, as Open vSwitch has it
MOST_RATE = (1 << 63) - 1
FRAME = 1518                    # bytes; a smaller burst is ignored, as with Open vSwitch
_SHAPERS = ('htb', 'hfsc')
_OWN = 'ofqos-'                 # type ofqos-pfifo, other_config limit=30: any scheduler of the switch, in dpctl's words

# Of schedulers without queues: key of other_config -> parameter, factor.
_KEYS: Mapping[str, Mapping[str, Tuple[str, int]]] = {
    'sfq': {'perturb': ('perturb', 1), 'quantum': ('quantum', 1)},
    'codel': {'target': ('target_us', 1), 'limit': ('limit', 1), 'interval': ('interval_us', 1)},
    'fq_codel': {'target': ('target_us', 1), 'limit': ('limit', 1), 'interval': ('interval_us', 1),
                 'flows': ('flows', 1), 'quantum': ('quantum', 1)},
    'netem': {'latency': ('latency_us', 1), 'limit': ('limit', 1), 'loss': ('loss_ppm', 10_000), 'jitter': ('jitter_us', 1)},
}
TYPES = tuple(f'linux-{name}' for name in (*_SHAPERS, *_KEYS, 'noop'))


@dataclass(frozen=True)
class Queue:
    """bit/s; `burst` in bytes, None: the switch's own choice."""
    rate: int
    ceil: int
    prio: int = 0
    burst: Optional[int] = None


@dataclass(frozen=True)
class Tree:
    """A port's queues.  `kind`: a scheduler's name, or 'noop': whatever it is.  `total` in bit/s."""
    kind: str
    total: int = 0
    queues: Mapping[int, Queue] = field(default_factory=dict)       # by class
    params: Mapping[str, Value] = field(default_factory=dict)      # of a scheduler without queues
    default: int = 0                                                # a class, or 0: the switch's own

    def is_met(self, has: Optional['Tree']) -> bool:
        """Whether a port that has that has what this is."""
        if self.kind == 'noop':
            return True
        if has is None or has.kind != self.kind or not _near(has.total, self.total) or has.default != self.default or \
                has.queues.keys() != self.queues.keys():
            return False
        if any(has.params.get(name) != value for name, value in self.params.items()):
            return False
        return all(_meets(queue, has.queues[number]) for number, queue in self.queues.items())


def _near(a: int, b: int) -> bool:
    """The kernel has whole bytes a second."""
    return abs(a - b) <= max(8, b >> 20)


def _meets(wanted: Queue, has: Queue) -> bool:
    return _near(has.rate, wanted.rate) and _near(has.ceil, wanted.ceil) and has.prio == wanted.prio


# ------------------------------------------------------------------------ rows -> what is wanted

def _number(config: Mapping[str, str], key: str, least: int = 1, most: int = MOST_RATE) -> Optional[int]:
    if key not in config:
        return None
    text = config[key]
    if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
        raise constraint(f'other_config:{key} is a whole number from {least} to {most}, not {text[:40]!r}')
    return int(text)


def _known(config: Mapping[str, str], keys: Sequence[str], what: str) -> None:
    for key in config:
        if key not in keys:
            raise constraint(f'other_config:{key[:40]} means nothing for {what}; there are {", ".join(keys) or "no keys"}')


def wanted(kind: str, config: Mapping[str, str], queues: Mapping[int, Tuple[Mapping[str, str], bool]],
           speed: int) -> Optional[Tree]:
    """What a row of QoS says.  queues: id -> (other_config, whether it has a dscp); speed: the link's, bit/s.
    None: nothing.  Failed: it can't be."""
    if kind == '':
        return None
    name = kind[6:] if kind in TYPES else ''
    if name in _SHAPERS:
        _known(config, ('max-rate',), kind)
        total = _number(config, 'max-rate') or speed
        return Tree(name, total, _queues(name, queues, total), default=DEFAULT if 0 in queues else 0)
    if queues:
        raise constraint(f'QoS of type {kind[:40]} has no queues; linux-htb and linux-hfsc have')
    if name == 'noop':
        _known(config, (), kind)
        return Tree('noop')
    if name:
        keys = _KEYS[name]
        _known(config, tuple(keys), kind)
        return Tree(name, params={keys[k][0]: (_number(config, k, 0, (1 << 32) - 1) or 0) * keys[k][1] for k in config})
    if kind.startswith(_OWN):
        return _of_switch(kind[len(_OWN):], config)
    raise constraint(f'there is no QoS type {kind[:40]!r} here; there are {", ".join(TYPES)}')


def _of_switch(name: str, config: Mapping[str, str]) -> Tree:
    if name not in SCHEDULERS or SCHEDULERS[name].classful or name == 'none':
        raise constraint(f'{_OWN}{name[:40]} names no scheduler without queues of the switch')
    text = ''.join(f',{key}={value}' for key, value in config.items())
    try:
        made = Request.from_text(name, f'cmd=add,port=1{text}')
    except (ValueError, OverflowError) as e:
        raise constraint(f'type {_OWN}{name}: {e}') from None
    return Tree(name, params=made.params)


def _queues(kind: str, said: Mapping[int, Tuple[Mapping[str, str], bool]], total: int) -> Dict[int, Queue]:
    found = {}
    ranks = _ranks([_number(config, 'priority', 0, (1 << 32) - 1) or 0 for config, _ in said.values()])
    keys = ('min-rate', 'max-rate', 'burst', 'priority') if kind == 'htb' else ('min-rate', 'max-rate')
    for number, (config, dscp) in said.items():
        if number > MOST_QUEUE:
            raise constraint(f'a queue is 0 to {MOST_QUEUE}, not {number}')
        if dscp:
            raise constraint(f'queue {number} has a dscp: queues don\'t mark here; a flow\'s set_field:ip_dscp does')
        try:
            _known(config, keys, f'a queue of linux-{kind}')
            rate = min(_number(config, 'min-rate') or LEAST_RATE, total)
            ceil = min(max(_number(config, 'max-rate') or total, rate), total)
            burst = (_number(config, 'burst') or 0) // 8
            if burst > (1 << 32) - 1:
                raise constraint(f'other_config:burst is up to {((1 << 32) - 1) * 8} bits')
        except Failed as e:
            raise constraint(f'queue {number}: {e.details}') from None
        found[number or DEFAULT] = Queue(rate, ceil, ranks[_number(config, 'priority', 0) or 0],
                                         burst if burst >= FRAME else None)
    return found


def _ranks(priorities: Sequence[int]) -> Dict[int, int]:
    """HTB has eight; only the order counts."""
    if max(priorities, default=0) < 8:
        return {priority: priority for priority in priorities}
    return {priority: min(rank, 7) for rank, priority in enumerate(sorted(set(priorities)))}


# ------------------------------------------------------------------------ what a port has

def _curve(params: Mapping[str, Value], *names: str) -> int:
    for name in names:
        curve = params.get(name)
        if isinstance(curve, Curve):
            return curve.m2
    return 0


def _integer(params: Mapping[str, Value], name: str) -> int:
    value = params.get(name, 0)
    return value if isinstance(value, int) else 0


def observe(entries: Sequence[Entry], default: int) -> Optional[Tree]:
    """Of one port's entries of a QOS_DUMP, and its default class of QOS_PORTS; what enters by it, and what is below
    queues, is left out."""
    own = [e for e in entries if not e.config.params.get('direction')]
    root = next((e for e in own if not e.is_class and (e.config.scheduler.classful or not e.class_id)), None)
    if root is None:
        return None
    kind = root.config.scheduler.name
    if kind not in _SHAPERS:
        return Tree(kind, params=root.config.params)
    total, queues = 0, {}
    for e in own:
        p = e.config.params
        if not e.is_class:
            continue
        queue = (Queue(_integer(p, 'rate'), _integer(p, 'ceil') or _integer(p, 'rate'), _integer(p, 'prio'),
                       _integer(p, 'burst') or None) if kind == 'htb' else
                 Queue(_curve(p, 'rt', 'ls'), _curve(p, 'ul')))
        if e.class_id == 0:
            total = queue.ceil if kind == 'htb' else _curve(p, 'ul', 'ls')
        elif e.class_id < ROOT_CLASS - 1:
            queues[e.class_id] = queue
    queues = {n: q if q.ceil else Queue(q.rate, total) for n, q in queues.items()}
    return Tree(kind, total, queues, default=default)


def described(tree: Tree) -> Tuple[str, Dict[str, str], Dict[int, Dict[str, str]]]:
    """A tree as rows: type, other_config, queues."""
    kind = f'linux-{tree.kind}'
    if tree.kind in _SHAPERS:
        queues = {}
        for number, q in tree.queues.items():
            config = {'min-rate': str(q.rate), 'max-rate': str(q.ceil)}
            if tree.kind == 'htb':
                config['priority'] = str(q.prio)
                if q.burst:
                    config['burst'] = str(8 * q.burst)
            queues[0 if number == DEFAULT == tree.default else number] = config
        return kind, {'max-rate': str(tree.total)}, queues
    if tree.kind in _KEYS:
        keys = _KEYS[tree.kind]
        return kind, {k: str(_integer(tree.params, name) // factor) for k, (name, factor) in keys.items()
                      if name in tree.params}, {}
    rows = {row.name: row for row in SCHEDULERS[tree.kind].fields(0, ADD)}
    return _OWN + tree.kind, {rows[name].key: format_value(rows[name].unit, value, rows[name].words)
                              for name, value in tree.params.items() if name in rows and name != 'direction'}, {}


# ------------------------------------------------------------------------ from the one to the other

def plan(port: int, has: Optional[Tree], wants: Optional[Tree]) -> List[Request]:
    """The requests that make a port that has the one have the other, to be sent as one bundle."""
    if wants is not None and (wants.kind == 'noop' or wants.is_met(has) and not _bursts(has, wants)):
        return []
    if wants is None:
        return [request('none', 'del', port)] if has is not None else []
    if has is not None and has.kind != wants.kind and (has.kind in _SHAPERS or wants.kind in _SHAPERS):
        return [request('none', 'del', port), *plan(port, None, wants)]
    if wants.kind not in _SHAPERS:
        action = ADD if has is None else 3
        return [Request(SCHEDULERS[wants.kind], action, 0, port, 0, _full(wants))]
    return _plan_shaper(port, has or Tree(wants.kind), wants, has is None)


def _full(tree: Tree) -> Mapping[str, Value]:
    given = {name: value for name, value in tree.params.items() if name != 'direction'}
    return {**{f.name: 0 for f in SCHEDULERS[tree.kind].qdisc if f.fixed}, **given}


def _bursts(has: Optional[Tree], wants: Tree) -> List[int]:
    """The queues whose burst is another."""
    return [n for n, q in wants.queues.items() if has and n in has.queues and q.burst != has.queues[n].burst]


def _plan_shaper(port: int, has: Tree, wants: Tree, fresh: bool) -> List[Request]:
    made = [request(wants.kind, ADD if fresh else CHANGE, port, wants.default, object='qdisc')]
    root = [] if has.total and _near(has.total, wants.total) else [_class(wants.kind, CHANGE, port, 0,
                                                                          Queue(wants.total, wants.total))]
    if wants.total >= has.total:
        made += root
    # A burst that is not given any more is the switch's own choice only in a class made anew.
    anew = {n for n in _bursts(has, wants) if wants.queues[n].burst is None}
    for number in has.queues:
        if number not in wants.queues or number in anew:
            made.append(request(wants.kind, DEL, port, number, with_children=1))
    for number, queue in wants.queues.items():
        there = number in has.queues and number not in anew
        if not there or not _meets(queue, has.queues[number]) or queue.burst != has.queues[number].burst:
            made.append(_class(wants.kind, CHANGE if there else ADD, port, number, queue))
    return made if wants.total >= has.total else made + root


def _class(kind: str, action: int, port: int, number: int, queue: Queue) -> Request:
    if kind == 'htb':
        burst = {} if queue.burst is None else {'burst': queue.burst}
        return request(kind, action, port, number, rate=queue.rate, ceil=queue.ceil, prio=queue.prio, **burst)
    least, most = Curve(queue.rate, 0, queue.rate), Curve(queue.ceil, 0, queue.ceil)
    if not number:
        return request(kind, action, port, 0, ls=least, ul=most)
    return request(kind, action, port, number, rt=least, ls=least, ul=most)
