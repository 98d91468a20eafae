# SPDX-License-Identifier: Apache-2.0
"""What a tenant may do, and the tokens and certificates that carry it."""
from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import json
import re
import secrets
import time
from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple, Union
from urllib.parse import parse_qsl

from ..table import MAX_QUEUE
from ..units import parse_rate

Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]
DIRECTIONS = ('out', 'in')      # what the tenant receives, what it sends
TOKEN = 'oqt1'
TOKEN_MAX = 4096                # characters
KEY_MIN = 32                    # bytes
GROUPS_MAX, TRANSFERS_MAX, CONNECTIONS_MAX, ADDRESSES_MAX = 64, 16, 1024, 16
PORT_MAX = 0xffff
RATE_MIN, RATE_MAX = 8000, 10 ** 13
NAME = re.compile(r'[a-z0-9][a-z0-9-]{0,31}')


class Denied(Exception):
    """Beyond what the tenant may do.  `status`: of HTTP; `right`: the one that is missing."""

    def __init__(self, right: str, text: str, status: int = 403) -> None:
        super().__init__(text)
        self.right, self.status = right, status


def _number(value: Any, what: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f'{what} must be a number from {least} to {most}')
    return value


def _network(text: Any) -> Network:
    if not isinstance(text, str):
        raise ValueError('an address is a text')
    return ipaddress.ip_network(text)


@dataclass(frozen=True)
class Rights:
    """Of one tenant: the port that it is behind, its addresses, the total of each direction (bit/s), and how
    much it may make.  Its queues are `queue` and those that follow: the groups', then the transfers'."""
    tenant: str
    port: int
    addresses: Tuple[Network, ...]
    total: Mapping[str, int]
    groups: int
    queue: int
    transfers: int = 2
    connections: int = 64

    @classmethod
    def of(cls, said: Any) -> 'Rights':
        """Out of a token, a certificate or the service's file; ValueError says what is wrong."""
        if not isinstance(said, dict):
            raise ValueError('rights are an object')
        name, addresses, total = said.get('tenant'), said.get('addresses'), said.get('total')
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise ValueError('tenant must be 1 to 32 small letters, digits and -')
        if not isinstance(addresses, list) or not 1 <= len(addresses) <= ADDRESSES_MAX:
            raise ValueError(f'addresses must be a list of 1 to {ADDRESSES_MAX}')
        if not isinstance(total, dict) or not total or set(total) - set(DIRECTIONS):
            raise ValueError('total must have out, in or both')
        made = cls(name, _number(said.get('port'), 'port', 1, PORT_MAX),
                   tuple(_network(a) for a in addresses),
                   {d: _number(total[d], 'total', RATE_MIN, RATE_MAX) for d in DIRECTIONS if d in total},
                   _number(said.get('groups'), 'groups', 1, GROUPS_MAX),
                   _number(said.get('queue'), 'queue', 1, MAX_QUEUE),
                   _number(said.get('transfers', 2), 'transfers', 0, TRANSFERS_MAX),
                   _number(said.get('connections', 64), 'connections', 0, CONNECTIONS_MAX))
        _number(made.queues[-1], 'the last queue', 1, MAX_QUEUE)
        return made

    def as_dict(self) -> Dict[str, Any]:
        return {'tenant': self.tenant, 'port': self.port, 'addresses': [str(a) for a in self.addresses],
                'total': dict(self.total), 'groups': self.groups, 'queue': self.queue,
                'transfers': self.transfers, 'connections': self.connections}

    # ------------------------------------------------------------------ what follows

    @property
    def queues(self) -> range:
        return range(self.queue, self.queue + self.groups + self.transfers)

    def group_queue(self, group: int) -> int:
        if not 1 <= group <= self.groups:
            raise Denied('groups', f'group {group}: this tenant has groups 1 to {self.groups}')
        return self.queue + group - 1

    @property
    def transfer_queues(self) -> range:
        return range(self.queue + self.groups, self.queues.stop)

    def owns(self, network: Network) -> bool:
        return any(own.version == network.version and network.subnet_of(own)  # type: ignore[arg-type]
                   for own in self.addresses)

    @property
    def cookie(self) -> int:
        """The high 48 bits of its flows' cookies; the others are the queue."""
        digest = hashlib.sha256(f'{self.tenant} {self.port}'.encode()).digest()
        return 0x54 << 56 | int.from_bytes(digest[:5], 'big') << 16


# ------------------------------------------------------------------------------------- tokens

def _coded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


def _decoded(text: str) -> bytes:
    """One text for one value: what decodes to the same bytes by other characters is refused."""
    data = base64.urlsafe_b64decode(text + '=' * (-len(text) % 4))
    if _coded(data) != text:
        raise ValueError('not canonical')
    return data


def _sign(key: bytes, payload: str) -> bytes:
    return hmac.new(key, f'{TOKEN}.{payload}'.encode(), hashlib.sha256).digest()


def make_token(key: bytes, rights: Rights, seconds: float, now: Optional[float] = None) -> str:
    """A token that holds for so long.  Whoever has it has the rights."""
    if len(key) < KEY_MIN:
        raise ValueError(f'a key has at least {KEY_MIN} bytes')
    begin = time.time() if now is None else now
    said = {**rights.as_dict(), 'expires': int(begin + seconds), 'id': secrets.token_hex(8)}
    payload = _coded(json.dumps(said, separators=(',', ':')).encode())
    token = f'{TOKEN}.{payload}.{_coded(_sign(key, payload))}'
    if len(token) > TOKEN_MAX:
        raise ValueError('the rights are too long for a token')
    return token


def read_token(keys: Sequence[bytes], token: str, revoked: FrozenSet[str] = frozenset(),
               now: Optional[float] = None) -> Rights:
    """The rights in it.  Denied (401): it is forged, has expired, or was revoked."""
    bad = Denied('token', 'the token is not one of this service', 401)
    parts = token.split('.') if len(token) <= TOKEN_MAX else []
    if len(parts) != 3 or parts[0] != TOKEN:
        raise bad
    try:
        signature = _decoded(parts[2])
    except (ValueError, binascii.Error):
        raise bad from None
    # All of them, so that the time does not tell which it was.
    if not any([hmac.compare_digest(signature, _sign(key, parts[1])) for key in keys]):
        raise bad
    try:
        said = json.loads(_decoded(parts[1]))
        expires, serial = said['expires'], said['id']
        rights = Rights.of(said)
    except (ValueError, KeyError, TypeError, binascii.Error):
        raise bad from None
    if not isinstance(expires, int) or expires <= (time.time() if now is None else now):
        raise Denied('token', 'the token has expired', 401)
    if serial in revoked:
        raise Denied('token', 'the token was revoked', 401)
    return rights


def serial_of(token: str) -> str:
    """The id by which a token is revoked; ValueError: it is none."""
    try:
        return str(json.loads(_decoded(token.split('.')[1]))['id'])
    except (IndexError, KeyError, binascii.Error) as e:
        raise ValueError('this is no token') from e


# ------------------------------------------------------------------------------- certificates

def from_uri(uri: str) -> Rights:
    """ofqos:red?port=1&addresses=10.0.0.1/32&in=800kbit&out=800kbit&groups=4&queue=100, as a certificate has
    it among its subjectAltName; ValueError says what is wrong."""
    head, _, query = uri.partition('?')
    scheme, _, name = head.partition(':')
    if scheme != 'ofqos':
        raise ValueError('the URI does not begin with ofqos:')
    pairs = parse_qsl(query, strict_parsing=True, max_num_fields=16)
    if len(dict(pairs)) != len(pairs):
        raise ValueError('a key is given twice')
    words = dict(pairs)
    said: Dict[str, Any] = {'tenant': name, 'addresses': words.pop('addresses', '').split(','),
                            'total': {d: parse_rate(words.pop(d)) for d in DIRECTIONS if d in words}}
    for key in ('port', 'groups', 'queue', 'transfers', 'connections'):
        if key in words:
            said[key] = int(words.pop(key))
    if words:
        raise ValueError(f'unknown: {", ".join(words)}')
    return Rights.of(said)


def from_certificate(peer: Mapping[str, Any]) -> Rights:
    """Of what ssl.SSLSocket.getpeercert() gives; it was verified by the CA.  Denied: it carries none."""
    names: Sequence[Tuple[str, str]] = peer.get('subjectAltName', ())
    uris: List[str] = [value for kind, value in names if kind == 'URI' and value.startswith('ofqos:')]
    if len(uris) != 1:
        raise Denied('certificate', 'the certificate must carry one URI that begins with ofqos:', 401)
    try:
        return from_uri(uris[0])
    except ValueError as e:
        raise Denied('certificate', f"the certificate's URI: {e}", 401) from None
