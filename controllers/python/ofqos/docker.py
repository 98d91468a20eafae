# SPDX-License-Identifier: Apache-2.0
"""ofqos-docker: Docker's network driver `ofqos`, whose containers are ports of this machine's switch.

    ofqos-docker --switch br0 --gateway of0
    docker network create -d ofqos --opt ingress=100mbit --opt egress=20mbit red
    docker run --network red ...
"""
from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import ipaddress
import json
import os
import re
import socket
import sys
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from aiohttp import web

from . import commandline
from .address import Address
from .ending import told
from .hostports import HostPorts, PortError, Total, exists, is_interface, run
from .httpserver import MANY, Denied, HttpServer, HttpSettings, answer, read_json
from .jsonfile import write
from .switches import listening_socket
from .units import parse_rate

SOCKET, STATE = '/run/docker/plugins/ofqos.sock', '/var/lib/ofqos-docker/networks.json'
NETWORKS_MOST, STATE_MOST = 4096, 8 << 20
OPTIONS = 'ingress', 'egress', 'rate'
_ID = re.compile(r'[0-9a-zA-Z]{12,128}')
_HOST, _INSIDE = 'ofd', 'ofe'           # what the ends of an endpoint's pair begin with: DeleteEndpoint needs no state
_ALIAS = re.compile(r'ofqos-docker/(\w+)/(\d{1,18})/(\d{1,18})')       # network, ingress, egress
_PORT, _UNUSED = re.compile(r'ofd[0-9a-z]{12}'), re.compile(r'ofe[0-9a-z]{12}')


class Bad(Exception):
    """A request that is not right."""


def _id(body: Mapping[str, Any], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise Bad(f'{key} must be 12 to 128 letters and digits')
    return value


def _object(what: Any, name: str) -> Dict[str, Any]:
    if what is not None and not isinstance(what, dict):
        raise Bad(f'{name} must be an object')
    return what or {}


def _ends(endpoint: str) -> List[str]:
    tail = hashlib.sha256(endpoint.encode()).hexdigest()[:12]
    return [_HOST + tail, _INSIDE + tail]


def _mac(endpoint: str) -> str:
    """A local one, the same each time."""
    return ':'.join(['02', *(f'{byte:02x}' for byte in hashlib.sha256(b'mac' + endpoint.encode()).digest()[:5])])


@dataclass(frozen=True)
class Network:
    """Rates of each of its containers, bit/s, 0: none; gateways as "10.0.0.1/24"."""
    ingress: int
    egress: int
    gateways: Sequence[str]

    def gateway(self, version: int) -> str:
        """Without its prefix; empty: there is none."""
        return next((str(found.ip) for found in map(ipaddress.ip_interface, self.gateways) if found.version == version), '')


def _rate(options: Mapping[str, Any], key: str) -> int:
    text = options.get(key, '0')
    try:
        rate = parse_rate(text) if isinstance(text, str) else -1
    except ValueError:
        rate = -1
    if not 0 <= rate < 1 << 50 or (key in options and not rate):
        raise Bad(f'--opt {key}={str(text)[:40]} must be a rate, such as 100mbit')
    return rate


def _rates(options: Mapping[str, Any]) -> Tuple[int, int]:
    """ingress, egress; 0: not given"""
    wrong = [key for key in options if key not in OPTIONS and not key.startswith('com.docker.')]
    if wrong:
        raise Bad(f'there is no --opt {wrong[0][:40]}; there are: {", ".join(OPTIONS)}')
    both = _rate(options, 'rate')
    return _rate(options, 'ingress') or both, _rate(options, 'egress') or both


def _network(body: Mapping[str, Any]) -> Network:
    """Of CreateNetwork"""
    options = _object(_object(body.get('Options'), 'Options').get('com.docker.network.generic'), 'com.docker.network.generic')
    ingress, egress = _rates(options)
    gateways = []
    for data in [*(body.get('IPv4Data') or []), *(body.get('IPv6Data') or [])]:
        try:
            gateway = _object(data, 'IPv4Data').get('Gateway')
            gateways += [str(ipaddress.ip_interface(gateway))] if gateway else []
        except (ValueError, TypeError):
            raise Bad(f'Gateway {str(gateway)[:60]!r} is no address') from None
    return Network(ingress, egress, gateways)


# ------------------------------------------------------------------------------------ what is kept

class Networks:
    """In a file, which changes as a whole.  Docker tells of a network once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.every: Dict[str, Network] = {}

    def load(self) -> None:
        """OSError, ValueError"""
        try:
            with open(self.path, encoding='ascii') as f:
                found = json.loads(f.read(STATE_MOST))
            self.every = {name: Network(int(row['ingress']), int(row['egress']), [str(ipaddress.ip_interface(g)) for g in row['gateways']])
                          for name, row in found.items()}
        except FileNotFoundError:
            self.every = {}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f'{self.path} is not what this service has written: {error!r}') from None

    def put(self, name: str, network: Optional[Network]) -> None:
        """None: takes it away."""
        changed = {key: value for key, value in self.every.items() if key != name}
        if network:
            changed[name] = network
        if len(changed) > NETWORKS_MOST:
            raise Bad(f'there are {NETWORKS_MOST} networks already')
        write(self.path, {key: {'ingress': n.ingress, 'egress': n.egress, 'gateways': list(n.gateways)} for key, n in changed.items()})
        self.every = changed


# ------------------------------------------------------------------------------------ the driver

class Driver:
    """gateway: the switch's local port, which gets the networks' gateways; empty: networks have none.  Methods take a request's body; they
    run one at a time.  Bad, PortError, OSError."""

    def __init__(self, ports: HostPorts, networks: Networks, gateway: str = '') -> None:
        self.ports, self.networks, self.gateway = ports, networks, gateway

    def _network(self, body: Mapping[str, Any]) -> Network:
        name = _id(body, 'NetworkID')
        if name not in self.networks.every:
            raise Bad(f'there is no network {name[:12]}')
        return self.networks.every[name]

    def _address(self, verb: str, network: Network, may_fail: bool = False) -> None:
        for address in network.gateways if self.gateway else ():
            run(['ip', 'address', verb, address, 'dev', self.gateway], may_fail=may_fail)

    def create_network(self, body: Mapping[str, Any]) -> Dict[str, Any]:
        name, network = _id(body, 'NetworkID'), _network(body)
        if self.gateway:
            run(['ip', 'link', 'set', 'dev', self.gateway, 'up'])
        self._address('replace', network)
        self.networks.put(name, network)
        return {}

    def delete_network(self, body: Mapping[str, Any]) -> Dict[str, Any]:
        name = _id(body, 'NetworkID')
        network = self.networks.every.get(name)
        if network:
            self._address('del', network, may_fail=True)
            self.networks.put(name, None)
        return {}

    def create_endpoint(self, body: Mapping[str, Any]) -> Dict[str, Any]:
        network, endpoint = self._network(body), _id(body, 'EndpointID')
        ingress, egress = _rates(_object(body.get('Options'), 'Options'))           # --driver-opt: of this container
        ingress, egress = ingress or network.ingress, egress or network.egress
        given = _object(body.get('Interface'), 'Interface').get('MacAddress')
        if given and not (isinstance(given, str) and re.fullmatch(r'([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}', given)):
            raise Bad(f'MacAddress {str(given)[:40]!r} is none')
        host, inside = _ends(endpoint)
        self.ports.remove_gone(_PORT.fullmatch)
        self._remove(endpoint)                   # what an earlier one left that did not come to its end
        try:
            run(['ip', 'link', 'add', host, 'arp', 'off', 'type', 'veth', 'peer', 'name', inside, 'address', given or _mac(endpoint)])
            run(['ip', 'link', 'set', 'dev', host, 'alias', f'ofqos-docker/{_id(body, "NetworkID")}/{ingress}/{egress}'])
            self._connect(host, ingress, egress)
        except (PortError, OSError):
            self._remove(endpoint)
            raise
        return {'Interface': {} if given else {'MacAddress': _mac(endpoint)}}

    def _connect(self, host: str, ingress: int, egress: int) -> None:
        """Off the machine's own stack: what a container sends reaches it by the switch alone."""
        run(['ip', 'link', 'set', 'dev', host, 'addrgenmode', 'none', 'arp', 'off', 'up'])
        with open(f'/proc/sys/net/ipv4/conf/{host}/rp_filter', 'w', encoding='ascii') as f:
            f.write('1')
        self.ports.add(host)
        self.ports.limit(host, Total(ingress) if ingress else None, Total(egress) if egress else None)

    def _remove(self, endpoint: str) -> None:
        """Twice, for the switch may read only now what a killed service has asked."""
        host, _ = _ends(endpoint)
        self.ports.remove(host)
        if exists(host):
            run(['ip', 'link', 'del', 'dev', host])
            self.ports.remove(host)

    def delete_endpoint(self, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Without a switch as well: it forgets its ports, and remove_gone() finds those that it has kept."""
        host, _ = _ends(_id(body, 'EndpointID'))
        try:
            self._remove(_id(body, 'EndpointID'))
        except PortError as error:
            _say(f'DeleteEndpoint: {error}')
            if exists(host):
                run(['ip', 'link', 'del', 'dev', host])
        return {}

    def info(self, body: Mapping[str, Any]) -> Dict[str, Any]:
        host, _ = _ends(_id(body, 'EndpointID'))
        return {'Value': {'port': host}}

    def join(self, body: Mapping[str, Any]) -> Dict[str, Any]:
        network, (host, inside) = self._network(body), _ends(_id(body, 'EndpointID'))
        if not exists(host):
            raise Bad(f'there is no interface {host}: was the endpoint made?')
        said: Dict[str, Any] = {'InterfaceName': {'SrcName': inside, 'DstPrefix': 'eth'}}
        four, six = (network.gateway(version) if self.gateway else '' for version in (4, 6))
        if not four and not six:
            return {**said, 'DisableGatewayService': True}
        return {**said, **({'Gateway': four} if four else {}), **({'GatewayIPv6': six} if six else {})}

    def restore(self) -> None:
        """At the start: removes pairs that no container has, and ports without a pair; makes the ports of a switch that has forgotten them."""
        there = [name for _, name in socket.if_nameindex()]
        for name in filter(_UNUSED.fullmatch, there):
            run(['ip', 'link', 'del', 'dev', name], may_fail=True)
        self.ports.remove_gone(_PORT.fullmatch)
        for network in self.networks.every.values():
            self._address('replace', network)
        for name in filter(_PORT.fullmatch, there):
            shown = run(['ip', '-json', 'link', 'show', 'dev', name], may_fail=True)    # nothing: its pair was removed above
            found = _ALIAS.fullmatch(json.loads(shown)[0].get('ifalias', '') if shown.strip() else '')
            if found and found[1] in self.networks.every:
                self._connect(name, int(found[2]), int(found[3]))


def nothing(_: Mapping[str, Any]) -> Dict[str, Any]:
    return {}


def _methods(driver: Driver) -> Dict[str, Callable[[Mapping[str, Any]], Dict[str, Any]]]:
    """By Docker's path"""
    found: Dict[str, Callable[[Mapping[str, Any]], Dict[str, Any]]] = {
        '/Plugin.Activate': lambda _: {'Implements': ['NetworkDriver']},
        '/NetworkDriver.GetCapabilities': lambda _: {'Scope': 'local', 'ConnectivityScope': 'local'},
        '/NetworkDriver.CreateNetwork': driver.create_network, '/NetworkDriver.DeleteNetwork': driver.delete_network,
        '/NetworkDriver.CreateEndpoint': driver.create_endpoint, '/NetworkDriver.DeleteEndpoint': driver.delete_endpoint,
        '/NetworkDriver.EndpointOperInfo': driver.info, '/NetworkDriver.Join': driver.join}
    for name in ('Leave', 'AllocateNetwork', 'FreeNetwork', 'DiscoverNew', 'DiscoverDelete', 'ProgramExternalConnectivity',
                 'RevokeExternalConnectivity'):
        found[f'/NetworkDriver.{name}'] = nothing
    return found


def _say(text: str) -> None:
    print(f'ofqos-docker: {text}', file=sys.stderr, flush=True)


def routes(http: HttpServer, driver: Driver) -> None:
    """Docker takes "Err" as the reason."""
    turn = asyncio.Lock()

    def handler(path: str, method: Callable[[Mapping[str, Any]], Dict[str, Any]]) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.Response:
            try:
                body = _object(await read_json(request, any_type=True), 'the body')
                async with turn:
                    return answer(await asyncio.get_running_loop().run_in_executor(None, method, body))
            except (Bad, Denied, PortError, OSError) as error:
                _say(f'{path.rpartition(".")[2]}: {error}')
                return answer({'Err': f'ofqos: {error}'}, 400 if isinstance(error, (Bad, Denied)) else 500)
        return handle
    for path, method in _methods(driver).items():
        http.route('POST', path, handler(path, method))


# ------------------------------------------------------------------------------------ the command

def _listener(path: str) -> socket.socket:
    """OSError."""
    os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
    try:
        return listening_socket(Address('unix', path))
    except FileExistsError:
        raise OSError(f'another one listens at {path}') from None


async def _run(args: argparse.Namespace) -> int:
    networks = Networks(args.state)
    driver = Driver(HostPorts(args.switch), networks, args.gateway)
    http = HttpServer(HttpSettings(name='ofqos-docker', address_rate=MANY, address_burst=MANY, each=1024))
    routes(http, driver)
    ended = told()
    try:
        os.makedirs(os.path.dirname(args.state) or '.', mode=0o700, exist_ok=True)
        networks.load()
        listener = _listener(args.listen)       # nobody else touches the ports from here on
    except (OSError, ValueError) as error:
        _say(str(error))
        return 1
    try:
        driver.restore()
        await http.start_unix(listener)
        print(f'listening at {args.listen}', flush=True)
        await ended.wait()
        await http.stop()
        return 0
    except (OSError, ValueError, PortError) as error:
        _say(str(error))
        return 1
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(args.listen)


def parser() -> argparse.ArgumentParser:
    made = commandline.parser('ofqos-docker', __doc__)
    made.add_argument('--switch', required=True, metavar='SWITCH', help="its name, or its socket's path")
    made.add_argument('--gateway', default='', metavar='INTERFACE',
                      help="the switch's local port, which gets the networks' gateways; without it containers have no default route")
    made.add_argument('--listen', default=SOCKET, metavar='PATH', help='where Docker looks for it (%(default)s)')
    made.add_argument('--state', default=STATE, metavar='FILE', help='which networks there are (%(default)s)')
    return made


def main(argv: Optional[Sequence[str]] = None) -> int:
    made = parser()
    args = made.parse_args(argv)
    if args.gateway and not is_interface(args.gateway):
        made.error(f'--gateway {args.gateway} is no name of an interface')
    return asyncio.run(_run(args))


if __name__ == '__main__':
    sys.exit(main())
