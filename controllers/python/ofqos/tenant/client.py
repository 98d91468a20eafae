# SPDX-License-Identifier: Apache-2.0
"""The tenant's side of the service.

    client = Client('http://127.0.0.1:8480', token)
    client.divide({1: 10, 2: {'in': 20, 'out': 30}})
    client.assign(1, address='10.0.0.1', protocol='tcp', port=80)
    client.transfer('out', 5_000_000, seconds=60, address='10.0.0.1', protocol='tcp', port=5001)

Inside a pod: Client().
"""
from __future__ import annotations

import json
import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Dict, List, Mapping, Optional, Union
from urllib.parse import urlencode, urlsplit

Share = Union[float, Mapping[str, float]]
DOOR = '169.254.84.80', 8480        # the service inside a pod, for which no token is needed; ofqos-cni gives the address to the loopback interface


class ServiceError(Exception):
    """The service refused: `status` of HTTP, `right`: what is missing or wrong."""

    def __init__(self, status: int, right: str, text: str) -> None:
        super().__init__(f'{status}: {right}: {text}')
        self.status, self.right, self.text = status, right, text


class Forbidden(ServiceError):
    """The tenant lacks the right that `right` names."""


class Client:
    """Of one tenant; a connection for each request.  context: with a certificate, in the place of a token."""

    def __init__(self, url: str = 'http://%s:%d' % DOOR, token: Optional[str] = None, context: Optional[ssl.SSLContext] = None,
                 timeout: float = 30) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ('http', 'https') or not parts.hostname:
            raise ValueError(f'{url!r} is no http://HOST:PORT or https://HOST:PORT')
        self._secure = parts.scheme == 'https'
        self._host, self._port = parts.hostname, parts.port
        self._token, self._context, self._timeout = token, context, timeout

    def request(self, method: str, path: str, body: Any = None) -> Any:
        connection: HTTPConnection = (
            HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._context) if self._secure
            else HTTPConnection(self._host, self._port, timeout=self._timeout))
        headers = {'Authorization': f'Bearer {self._token}'} if self._token else {}
        if body is not None:
            headers['Content-Type'] = 'application/json'
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            data, kind = answer.read(), answer.headers.get_content_type()
        except HTTPException as e:
            raise ServiceError(0, 'service', f'no answer: {e!r}') from None
        finally:
            connection.close()
        if kind != 'application/json':
            return data.decode()
        said = json.loads(data)
        if answer.status >= 400:
            error = said['error']
            raise (Forbidden if answer.status == 403 else ServiceError)(
                answer.status, error['right'], error['message'])
        return said

    def show(self) -> Dict[str, Any]:
        """Rights, groups, connections, transfers."""
        return dict(self.request('GET', '/v1/tenant'))

    def divide(self, shares: Mapping[int, Share]) -> Dict[str, Any]:
        """The shares of all groups, in percent; those that aren't named go."""
        return dict(self.request('PUT', '/v1/groups', {str(g): s for g, s in shares.items()}))

    def assign(self, group: int, **connection: Any) -> Dict[str, Any]:
        """Puts a connection into a group, or moves it there."""
        return dict(self.request('PUT', '/v1/connections', {'group': group, 'connection': connection}))

    def unassign(self, number: str) -> None:
        self.request('DELETE', f'/v1/connections/{number}')

    def transfer(self, direction: str, size: int, seconds: Optional[float] = None, by: Optional[float] = None,
                 **connection: Any) -> Dict[str, Any]:
        """Reserves what so many bytes need by that time."""
        when = {k: v for k, v in (('seconds', seconds), ('by', by)) if v is not None}
        return dict(self.request('POST', '/v1/transfers',
                                 {'direction': direction, 'bytes': size, 'connection': connection, **when}))

    def release(self, number: str) -> None:
        self.request('DELETE', f'/v1/transfers/{number}')

    def usage(self, **query: float) -> List[Dict[str, Any]]:
        return list(self.request('GET', '/v1/usage?' + urlencode(query) if query else '/v1/usage'))

    def usage_csv(self, **query: float) -> str:
        return str(self.request('GET', '/v1/usage.csv?' + urlencode(query) if query else '/v1/usage.csv'))
