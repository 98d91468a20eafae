# SPDX-License-Identifier: Apache-2.0
"""What the commands tell: as JSON's objects, and as lines."""
from __future__ import annotations

import difflib
import ipaddress
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from ..units import format_rate
from .difference import Difference, Step
from .model import Circuit, Network, Pair, Prefix, Problems, Site, shown
from .plan import WAYS, Box
from .read import covers, text_of
from .state import State, circuit_key, site_key

MOST_LINES, MOST_WARNINGS = 50, 10     # of errors, and of what a plan changes
_SIGNS = {'+': 'new', '~': 'changed', '-': 'gone'}


def plural(number: int, word: str, more: str = 's') -> str:
    return f'{number:,} {word}{more * (number != 1)}'


def counts(network: Network) -> Dict[str, Any]:
    return {'sites': len(network.sites), 'circuits': len(network.circuits),
            'addresses': sum(len(circuit.addresses) for circuit in network.circuits.values())}


def problems(found: Problems, more: Iterable[str] = ()) -> Dict[str, Any]:
    return {'errors': [{**each._asdict(), 'text': str(each)} for each in found.errors],
            'warnings': [{**each._asdict(), 'text': str(each)} for each in found.warnings] + [{'text': text} for text in more]}


def box(options: Dict[str, str], made: Box) -> Dict[str, Any]:
    return {**options, 'download': made.total.down, 'upload': made.total.up, 'unlisted': made.unlisted.down}


# ---------------------------------------------------------------------------------- difference

def difference(made: Difference) -> Dict[str, Any]:
    """By owner, in the order of the steps"""
    by_key: Dict[str, List[Step]] = {}
    for step in made.steps:
        by_key.setdefault(step.key, []).append(step)
    return {'changes': [_change(key, steps) for key, steps in by_key.items()], 'left': made.left, 'messages': len(made.steps)}


def _change(key: str, steps: List[Step]) -> Dict[str, Any]:
    """It is new or gone where its class is."""
    signs = {step.sign for step in steps if step.what == 'class'}
    sign = next(iter(signs)) if len(signs) == 1 else '~'
    said = ['moved'] * (signs == {'+', '-'}) + [step.text for step in steps if step.what == 'class' and step.sign != '-']
    said += [step.text for step in steps if step.what == 'leaf' and sign == '~']
    flows = [step for step in steps if step.what == 'flow']
    if sign == '~':
        said += [f'{step.sign}{step.text}' for step in flows]
    elif key.startswith('circuit') and sign == '+':
        said += list(dict.fromkeys(step.text.partition(' ')[2] for step in flows if step.text != 'all others'))
    return {'what': _SIGNS[sign], 'of': key or 'the port', 'classes': sum(step.what == 'class' for step in steps), 'flows': len(flows), 'text': ', '.join(said)}


def _plan_lines(command: str, found: Dict[str, Any]) -> List[str]:
    each = found['box']
    made = [f'switch {found["switch"]} at {each["connect"] or each["accept"]}: core {each["core"]}, edge {each["edge"]}, download '
            f'{format_rate(each["download"])}, upload {format_rate(each["upload"])}, leaf {each["leaf"]}']
    marks = {word: sign for sign, word in _SIGNS.items()}
    changes = found['changes']
    made += [f'  {marks[change["what"]]} {change["of"]}{": " * bool(change["text"])}{change["text"]}' for change in changes[:MOST_LINES]]
    if len(changes) > MOST_LINES:
        made.append(f'  ... and {len(changes) - MOST_LINES:,} more: --json has them all')
    if found['left']:
        made.append(f'  not the shaper\'s, and left as they are: {plural(found["left"], "queue")} of these ports')
    sums = ', '.join(f'{sum(change["what"] == word for change in changes):,} {word}' for word in _SIGNS.values())
    done = {'plan': 'apply would send', 'apply': 'sent'}[command]
    made.append(f'{sums}: {done} {plural(found["messages"], "message")} in one bundle' if changes else 'nothing to change: the switch has it all')
    return made


# ---------------------------------------------------------------------------------------- tree

def tree(state: State, what: Optional[str], live: Optional[Sequence[Any]]) -> List[Dict[str, Any]]:
    """Rows with their depth: all of it, or what is named with its way from the top.  ValueError: there is no such thing."""
    network = state.network
    below: Dict[str, List[Any]] = {}
    every: List[Any] = [*network.sites.values(), *network.circuits.values()]
    for each in every:
        below.setdefault(each.parent, []).append(each)
    rows: List[Dict[str, Any]] = []

    def add(each: Any, depth: int, deep: bool) -> None:
        rows.append({**_row(each, state, live), 'depth': depth})
        if deep and isinstance(each, Site):
            for child in below.get(each.name, []):
                add(child, depth + 1, True)
    if what is None:
        for each in below.get('', []):
            add(each, 0, True)
        if live:
            rows.append({**_measured(state.numbers.get('unlisted', 0), live), 'what': 'unlisted', 'name': 'all other addresses', 'depth': 0})
        return rows
    named = find(network, what)
    way: List[Site] = []
    parent = named.parent
    while parent:
        way.insert(0, network.sites[parent])
        parent = network.sites[parent].parent
    for depth, site in enumerate(way):
        add(site, depth, False)
    add(named, len(way), True)
    return rows


def find(network: Network, what: str) -> Any:
    """By a site's name, a circuit's id or name, or an address.  ValueError."""
    if what in network.sites:
        return network.sites[what]
    if what in network.circuits:
        return network.circuits[what]
    try:
        net = ipaddress.ip_network(what, strict=False)
    except ValueError:
        for circuit in network.circuits.values():
            if circuit.name == what:
                return circuit
        near = difflib.get_close_matches(what, [*network.sites, *network.circuits], 1)
        raise ValueError(f'there is no site, circuit or address {shown(what)}' + (f': did you mean {near[0]}?' if near else '')) from None
    asked = Prefix(net.version, int(net.network_address), net.prefixlen)
    for circuit in network.circuits.values():
        if any(covers(prefix, asked) or covers(asked, prefix) for prefix in circuit.addresses):
            return circuit
    raise ValueError(f'{what} is in no circuit: its packets are in the queue "unlisted"')


def _row(each: Any, state: State, live: Optional[Sequence[Any]]) -> Dict[str, Any]:
    if isinstance(each, Circuit):
        number = state.numbers[circuit_key(each.id)]
        return {'what': 'circuit', 'name': each.id, 'customer': each.name, 'queue': number, 'guarantee': each.guarantee._asdict(),
                'ceiling': each.ceiling._asdict(), 'addresses': [text_of(prefix) for prefix in each.addresses], **_measured(number, live)}
    number = state.numbers[site_key(each.name)]
    return {'what': each.kind, 'name': each.name, 'queue': number, 'ceiling': each.ceiling._asdict(), **_measured(number, live)}


def _measured(number: int, live: Optional[Sequence[Any]]) -> Dict[str, Any]:
    if live is None:
        return {}
    rates: List[Tuple[int, int]] = [tree_.get(number, (0, 0)) for tree_ in live]
    return {'now': Pair(*(rate for rate, _ in rates))._asdict(), 'dropped': Pair(*(drops for _, drops in rates))._asdict()}


def _tree_lines(found: Dict[str, Any]) -> List[str]:
    return ['  ' * row['depth'] + _tree_line(row) for row in found['tree']] or ['no sites and no circuits']


def _tree_line(row: Dict[str, Any]) -> str:
    rates = []
    for way in WAYS:
        ceiling = format_rate(row['ceiling'][way]) if 'ceiling' in row else ''
        if 'guarantee' in row and row['guarantee'][way] != row['ceiling'][way]:
            ceiling = f'{format_rate(row["guarantee"][way])} to {ceiling}'
        now = f'{row["now"][way] / 1e6:.1f} Mbit/s now' if 'now' in row else ''
        drops = f'{row["dropped"][way]} dropped' if row.get('dropped', {}).get(way) else ''
        rates.append(f'{way} {", ".join(filter(None, (ceiling, now, drops)))}')
    text = f'{row["what"]} {row["name"]}' if row['what'] != 'unlisted' else 'unlisted'
    if row.get('customer') and row['customer'] != row['name']:
        text += f' ({row["customer"]})'
    queue = f'; queue {row["queue"]}' if 'queue' in row else ''
    addresses = f'; {", ".join(row["addresses"])}' if row.get('addresses') else ''
    return f'{text}: {"; ".join(rates)}{queue}{addresses}'


# --------------------------------------------------------------------------------------- lines

def said(found: Dict[str, Any]) -> List[str]:
    """For standard error: what is wrong, and what looks like it"""
    made = []
    for kind in 'errors', 'warnings':
        texts = [each['text'] for each in found.get(kind, ())]
        most = MOST_WARNINGS if kind == 'warnings' else MOST_LINES
        made += [('warning: ' if kind == 'warnings' else '') + text for text in texts[:most]]
        if len(texts) > most:
            made.append(f'... and {len(texts) - most:,} more {kind}: --json has them all')
    return made


def lines(command: str, found: Dict[str, Any]) -> List[str]:
    """For standard output"""
    if command == 'show':
        return _tree_lines(found)
    if found['errors']:
        return []
    if command == 'check':
        return ['right: ' + ', '.join(plural(found[f'{what}s'], what) for what in ('site', 'circuit')) + f', {plural(found["addresses"], "address", "es")}']
    return _plan_lines(command, found)
