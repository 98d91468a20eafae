# SPDX-License-Identifier: Apache-2.0
"""What BandwidthPolicies and pods' annotations say: the totals of each pod.  No I/O."""
from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

GROUP, VERSION, PLURAL = 'ofqos.io', 'v1alpha1', 'bandwidthpolicies'
RATE_MIN, RATE_MAX = 8000, 10 ** 13             # bit/s
# What Kubernetes calls a direction, and what the switch does: ingress goes into the pod, out of its port.
DIRECTIONS = {'ingress': 'out', 'egress': 'in'}
ANNOTATION = 'kubernetes.io/%s-bandwidth'
GROUPS = 'ofqos.io/groups'
PPM = 1_000_000
_QUANTITY = re.compile(r'(\d{1,18}(?:\.\d{1,9})?)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?', re.ASCII)
_UNITS = {'m': Fraction(1, 1000), None: Fraction(1), **{unit: Fraction(1000 ** (n + 1)) for n, unit in enumerate('kMGTP')},
          **{unit + 'i': Fraction(1024 ** (n + 1)) for n, unit in enumerate('KMGTP')}}
Name = Tuple[str, str]          # namespace, name


def quantity(text: Any) -> int:
    """Kubernetes' 100M, 1.5G, 64Mi, in bit/s.  ValueError."""
    found = _QUANTITY.fullmatch(str(text)) if isinstance(text, (str, int)) and not isinstance(text, bool) else None
    rate = int(Fraction(found[1]) * _UNITS[found[2]]) if found else 0
    if not RATE_MIN <= rate <= RATE_MAX:
        raise ValueError(f'{str(text)[:40]!r} must be bits a second from 8k to 10T, such as 100M')
    return rate


def shares(said: Any) -> Dict[str, int]:
    """Groups' shares, as ofqos-cni takes them, in ppm of the total.  ValueError."""
    found: Dict[str, int] = {}
    if not isinstance(said, list) or len(said) > 16 or not all(isinstance(group, dict) for group in said):
        raise ValueError('groups must be a list of at most 16 objects with name and share')
    for group in said:
        name, share = group.get('name'), group.get('share')
        if not isinstance(name, str) or not name or name in found:
            raise ValueError('groups: each must have a name of its own')
        if not isinstance(share, (int, float)) or isinstance(share, bool) or not 0.01 <= share <= 100:
            raise ValueError(f'groups: share of {name[:40]!r} must be a number from 0.01 to 100, percent of the total')
        found[name] = int(share * 10000 + 0.5)
    if sum(found.values()) > PPM:
        raise ValueError('groups: the shares come to more than 100')
    return found


# ------------------------------------------------------------------------------------ selectors

def _operator(wanted: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = wanted['key'], wanted.get('values') or []
    does = {'In': labels.get(key) in values, 'NotIn': labels.get(key) not in values, 'Exists': key in labels, 'DoesNotExist': key not in labels}
    if wanted['operator'] not in does:
        raise ValueError(f'selector: operator {str(wanted["operator"])[:40]!r} must be one of {", ".join(does)}')
    return does[wanted['operator']]


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """As for all of Kubernetes; an empty one selects every pod.  ValueError."""
    try:
        exact = selector.get('matchLabels') or {}
        return all(labels.get(key) == value for key, value in exact.items()) and \
            all([_operator(wanted, labels) for wanted in selector.get('matchExpressions') or []])
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f'selector: {error!r}') from None


# ------------------------------------------------------------------------------------ objects

@dataclass(frozen=True)
class Pod:
    name: Name
    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> 'Pod':
        meta = said['metadata']
        return cls((meta['namespace'], meta['name']), meta.get('labels') or {}, meta.get('annotations') or {})


@dataclass(frozen=True)
class Policy:
    """wrong: why it is for no pod; the schema of the API has let it pass."""
    name: Name
    generation: int
    precedence: int
    selector: Mapping[str, Any]
    total: Mapping[str, int]    # by the switch's directions
    wrong: str = ''
    groups: Mapping[str, int] = field(default_factory=dict)     # name: share, ppm

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> 'Policy':
        meta, spec = said['metadata'], said.get('spec')
        name, generation = (meta['namespace'], meta['name']), int(meta.get('generation', 0))
        try:
            if not isinstance(spec, dict):
                raise ValueError('spec must be an object')
            total = {way: quantity(spec[key]) for key, way in DIRECTIONS.items() if key in spec}
            groups = shares(spec.get('groups', []))
            selector, precedence = spec.get('selector') or {}, spec.get('precedence', 0)
            selects(selector, {})
            if not total and not groups or not isinstance(precedence, int):
                raise ValueError('spec must have ingress, egress or groups, and precedence is a number')
            return cls(name, generation, precedence, selector, total, groups=groups)
        except ValueError as error:
            return cls(name, generation, 0, {}, {}, str(error))


def chosen(pod: Pod, policies: Iterable[Policy]) -> Optional[Policy]:
    """Of the pod's namespace: that of the highest precedence, then the first by its name."""
    every = [p for p in policies if not p.wrong and p.name[0] == pod.name[0] and selects(p.selector, pod.labels)]
    return min(every, key=lambda p: (-p.precedence, p.name)) if every else None


def totals(pod: Pod, policy: Optional[Policy]) -> Dict[str, int]:
    """The policy's, else the annotations', as the plugin has read them; a direction that neither names stays as it is."""
    found: Dict[str, int] = {}
    for key, way in DIRECTIONS.items():
        try:
            if ANNOTATION % key in pod.annotations:
                found[way] = quantity(pod.annotations[ANNOTATION % key])
        except ValueError:      # the runtime has refused it
            pass
    return {**found, **(policy.total if policy else {})}


def group_shares(pod: Pod, policy: Optional[Policy]) -> Dict[str, int]:
    """Likewise; which groups the pod has, and what is in them, the plugin has decided."""
    found: Dict[str, int] = {}
    with contextlib.suppress(ValueError, RecursionError):
        found = shares(json.loads(pod.annotations.get(GROUPS, '[]')))
    return {**found, **(policy.groups if policy else {})}


# ------------------------------------------------------------------------------------ status

@dataclass
class Kept:
    """Of a policy, on one node"""
    pods: int = 0               # that it is for
    limited: int = 0            # that have its totals
    broken: int = 0             # that get less than they were promised, at this moment
    part: float = 1             # of the time in which the worst got its promise


def status(node: str, policy: Policy, kept: Kept) -> Dict[str, Any]:
    """The node's own row; others' rows are others'."""
    row: Dict[str, Any] = {'node': node, 'observedGeneration': policy.generation, 'pods': kept.pods, 'limited': kept.limited,
                           'broken': kept.broken, 'kept': f'{kept.part * 100:.1f}%'}
    if policy.wrong:
        row['message'] = policy.wrong[:200]
    own = [row] if kept.pods or policy.wrong else []
    return {'apiVersion': f'{GROUP}/{VERSION}', 'kind': 'BandwidthPolicy', 'metadata': {'namespace': policy.name[0], 'name': policy.name[1]},
            'status': {'nodes': own}}


def rows(said: Mapping[str, Any], node: str) -> List[Dict[str, Any]]:
    """The node's own, of a policy as the API has it"""
    return [row for row in (said.get('status') or {}).get('nodes') or [] if row.get('node') == node]


__all__ = ['GROUP', 'Kept', 'PLURAL', 'Pod', 'Policy', 'PPM', 'VERSION', 'chosen', 'group_shares', 'quantity', 'rows', 'selects', 'shares', 'status', 'totals']
