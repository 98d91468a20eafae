# SPDX-License-Identifier: Apache-2.0
"""ofqosd's HTTP API: a row for each request, from which its OpenAPI description and the client (ofqos.client) are made.
The fields' meanings are in docs/how-to/web.md, network.md and reservations.md."""
from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Tuple

from . import __version__

# A field's type; "?" behind it: may be left out.
Fields = Tuple[Tuple[str, str], ...]
_TYPES: Dict[str, Dict[str, Any]] = {
    'number': {'type': 'integer', 'minimum': 0}, 'text': {'type': 'string'}, 'yes': {'type': 'boolean'},
    'list': {'type': 'array', 'items': {}}, 'object': {'type': 'object'}, 'id': {'type': 'string', 'pattern': '^[0-9a-f]{16}$'}}


class Operation(NamedTuple):
    """`path` has its fields in braces; `takes`: of the query, or of the body where the method is POST or PUT."""
    name: str
    method: str
    path: str
    about: str
    right: str              # that it takes
    takes: Fields = ()

    @property
    def in_path(self) -> List[str]:
        return re.findall(r'\{(\w+)\}', self.path)


_S = '/api/switches/{dp}'
_DRY: Fields = (('dry_run', 'yes?'),)
OPERATIONS: Tuple[Operation, ...] = (
    Operation('session', 'GET', '/api/session', 'Who is signed in', ''),
    Operation('sign_in', 'POST', '/api/session', 'Signs in, for pages: sets a cookie', '', (('token', 'text'),)),
    Operation('sign_out', 'DELETE', '/api/session', 'Signs out', ''),
    Operation('view', 'GET', '/api/view', 'The latest state of network, events, switch/DP or port/DP/NUMBER', 'see', (
        ('view', 'text'), ('first', 'number?'), ('second', 'number?'), ('rows', 'number?'), ('find', 'text?'), ('sort', 'text?'))),
    Operation('stream', 'GET', '/api/stream', 'The same as server-sent events', 'see', (('view', 'text'),)),
    Operation('move', 'POST', '/api/stream/{id}', 'Other rows of a stream', 'see', (
        ('first', 'number?'), ('second', 'number?'), ('rows', 'number?'), ('find', 'text?'), ('sort', 'text?'))),
    Operation('history', 'GET', '/api/history', 'A queue, port or switch over an hour, a day or a month', 'see', (
        ('switch', 'id'), ('port', 'number?'), ('direction', 'text?'), ('queue', 'number?'), ('of', 'text?'), ('until', 'number?'))),
    Operation('heat', 'GET', '/api/history/heat', "The slowest queues of a port over time", 'see', (
        ('switch', 'id'), ('port', 'number'), ('direction', 'text?'), ('what', 'text?'), ('of', 'text?'), ('until', 'number?'))),
    Operation('hosts', 'GET', _S + '/hosts', 'Hosts with queues of their own', 'see', (('port', 'number'),)),
    Operation('trace', 'POST', _S + '/trace', 'What happens to a packet', 'see', (('packet', 'text'),)),
    Operation('rate', 'POST', _S + '/rate', "A queue's rates", 'rates', (
        ('port', 'number'), ('queue', 'number'), ('rate', 'text'), ('ceil', 'text'), ('direction', 'text?'), ('seen', 'object?'),
        *_DRY)),
    Operation('queue', 'POST', _S + '/queue', 'A new queue, and what goes into it', 'rates', (
        ('port', 'number'), ('queue', 'number'), ('rate', 'text'), ('ceil', 'text?'), ('parent', 'number?'), ('name', 'text?'),
        ('direction', 'text?'), ('rule', 'text?'), ('then', 'text?'), *_DRY)),
    Operation('rule', 'POST', _S + '/rule', 'What goes into a queue', 'rates', (
        ('port', 'number'), ('queue', 'number'), ('rule', 'text'), ('then', 'text?'), *_DRY)),
    Operation('profiles', 'GET', '/api/profiles', 'Profiles that can be applied', 'see'),
    Operation('profile', 'POST', _S + '/profile', 'A profile on ports', 'policy', (
        ('profile', 'text'), ('ports', 'list'), ('values', 'object?'), *_DRY)),
    Operation('changes', 'GET', '/api/changes', 'Changes that can be taken back', 'see'),
    Operation('undo', 'POST', '/api/changes/{id}/undo', 'Takes one back', 'rates'),
    Operation('log', 'GET', '/api/log', 'Who changed what, the newest first', 'administer', (
        ('user', 'text?'), ('switch', 'id?'), ('most', 'number?'))),
    Operation('joining', 'GET', '/api/joining', 'Switches that wait, and those that are approved', 'administer'),
    Operation('approve', 'POST', '/api/joining/{dp}/approve', 'One that waits may join, with the certificate that it has shown', 'administer'),
    Operation('forget', 'POST', '/api/joining/{dp}/forget', 'One that is known waits again when it comes', 'administer'),
    Operation('policy', 'GET', '/api/policy', 'The policy in force, and each switch', 'see'),
    Operation('policy_diff', 'GET', '/api/policy/diff', 'What is other than it is to be', 'see'),
    Operation('policy_plan', 'POST', '/api/policy/plan', 'What a policy would change', 'see', (('policy', 'text'),)),
    Operation('policy_apply', 'POST', '/api/policy/apply', 'It comes into force at all switches, or none', 'policy', (
        ('policy', 'text'), ('canary', 'yes?'))),
    Operation('policy_rollback', 'POST', '/api/policy/rollback', 'Back to an earlier revision', 'policy', (
        ('revision', 'number?'), ('canary', 'yes?'))),
    Operation('subscribers', 'GET', '/api/subscribers', 'Sites and circuits, and what they do now', 'see', (
        ('site', 'text?'), ('first', 'number?'), ('second', 'number?'), ('rows', 'number?'), ('find', 'text?'), ('sort', 'text?'))),
    Operation('subscribers_csv', 'GET', '/api/subscribers.csv', 'Each circuit, its rates and its bytes, for billing', 'see'),
    Operation('subscribers_apply', 'POST', '/api/subscribers/apply', 'The lists again', 'policy', (('force', 'yes?'), *_DRY)),
    Operation('subscriber', 'GET', '/api/subscribers/{circuit}', 'One circuit', 'see'),
    Operation('subscriber_change', 'PUT', '/api/subscribers/{circuit}', "A circuit's plan, which wins over the list", 'rates', (
        ('guarantee', 'object?'), ('ceiling', 'object?'), ('addresses', 'list?'), ('parent', 'text?'), ('name', 'text?'),
        ('as_listed', 'yes?'), *_DRY)),
    Operation('subscriber_remove', 'DELETE', '/api/subscribers/{circuit}', 'Takes it away, though it may be in the list', 'rates'),
    Operation('topology', 'GET', '/topology', 'Switches, links and hosts', ''),
    Operation('paths', 'GET', '/paths', 'Paths between two ends', '', (('from', 'text'), ('to', 'text'), ('rate', 'text?'))),
    Operation('reservations', 'GET', '/reservations', 'All of them', ''),
    Operation('reserve', 'POST', '/reservations', 'A rate on every hop, or on none', 'rates', (
        ('name', 'text'), ('rate', 'text'), ('from', 'text'), ('to', 'text'), ('ceil', 'text?'), ('app', 'list?'),
        ('dscp', 'list?'), ('match', 'object?'))),
    Operation('reservation', 'GET', '/reservations/{name}', 'One, with counters', ''),
    Operation('release', 'DELETE', '/reservations/{name}', 'Away with it', 'rates'),
    Operation('reroute', 'POST', '/reservations/{name}/move', 'To the best path', 'rates', (('avoid', 'list?'),)),
    Operation('metrics', 'GET', '/metrics', 'For Prometheus', 'see'),
    Operation('openconfig', 'GET', '/openconfig/{dp}', "A switch in OpenConfig's models", 'see'),
    Operation('description', 'GET', '/api/openapi.json', 'This document', ''),
)


def description() -> Dict[str, Any]:
    """OpenAPI 3."""
    paths: Dict[str, Dict[str, Any]] = {}
    for o in OPERATIONS:
        paths.setdefault(o.path, {})[o.method.lower()] = _operation(o)
    return {'openapi': '3.0.3', 'info': {'title': 'ofqosd', 'version': __version__, 'description':
            'Pages, metrics, policy and reservations of many switches (docs/how-to/ofqosd.md).  A request for a module that '
            'does not run is answered with 404.'},
            'security': [{'token': []}], 'paths': paths,
            'components': {'securitySchemes': {'token': {'type': 'http', 'scheme': 'bearer', 'description':
                                                         "or a client's certificate, by TLS"}},
                           'schemas': {'Error': {'type': 'object', 'required': ['error'], 'properties': {
                    'error': {'description': 'what is wrong, and what would be right: a sentence, or an object with one'},
                    'field': {'type': 'string', 'description': 'which one is wrong'}}}}}}


def _operation(o: Operation) -> Dict[str, Any]:
    found: Dict[str, Any] = {'operationId': o.name, 'summary': o.about, 'parameters': [
        {'name': name, 'in': 'path', 'required': True, 'schema': _TYPES['text']} for name in o.in_path]}
    if o.right:
        found['description'] = f'Takes the right "{o.right}".'
    else:
        found['security'] = []
    if o.method == 'GET':
        found['parameters'] += [{'name': name, 'in': 'query', 'required': not kind.endswith('?'),
                                 'schema': _TYPES[kind.rstrip('?')]} for name, kind in o.takes]
    elif o.takes:
        found['requestBody'] = {'required': any(not kind.endswith('?') for _, kind in o.takes), 'content': {'application/json': {
            'schema': {'type': 'object', 'properties': {name: _TYPES[kind.rstrip('?')] for name, kind in o.takes},
                       'required': [name for name, kind in o.takes if not kind.endswith('?')] or None}}}}
        schema = found['requestBody']['content']['application/json']['schema']
        if schema['required'] is None:
            del schema['required']
    found['responses'] = {'2XX': {'description': 'done'}, 'default': {
        'description': 'refused; nothing has changed',
        'content': {'application/json': {'schema': {'$ref': '#/components/schemas/Error'}}}}}
    return found
