# SPDX-License-Identifier: Apache-2.0
"""Put this application's traffic into a queue of this rate: an os-ken (or Ryu) application.

It makes learning switches of all ofqos switches that connect, and has a REST interface on
127.0.0.1:8080 (or what $OFQOS_REST says, as 0.0.0.0:80):

    POST   /apps        {"name": "video", "rate": "5mbit", "match": {"tcp_dst": 5001}} -> 201
    GET    /apps        all of them, with what has been sent through their queues
    GET    /apps/NAME   one
    DELETE /apps/NAME   -> 204

`ceil`, what it may borrow up to (default: the rate), and `port`, the only port that its queue is to
be on (default: all), may be given.  `match` has os-ken's names of header fields, [value, mask]
where a mask is meant; without an eth_type or addresses it is for IPv4 and IPv6.  A queue, and the
flows that lead to it, are set on a switch as one bundle: all of it, or nothing.  `appctl.py` is a
client.

Table 0 gives packets of the applications their queue, table 1 is the learning switch.
"""
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Dict, List, Optional, Tuple

from ofqos import MAX_QUEUE, Refused, Request, parse_rate, request
from ofqos import framework
from ofqos.framework import ethernet, handler, hub, ofp_event, ofproto_v1_3, packet
from ofqos.service import Qos

LISTEN = os.environ.get('OFQOS_REST', '127.0.0.1:8080')
APPS_TABLE, LEARNING_TABLE = 0, 1
APP_PRIORITY = 100
MOST_BODY = 65536               # bytes
COOKIE = 0x514f5300000000       # and the queue, of an application's flows
ETH_TYPES = (0x0800, 0x86dd)
IP_PROTOS = {'tcp': 6, 'udp': 17, 'sctp': 132}


class BadRequest(Exception):
    """What a client asked for is wrong: HTTP status and a sentence."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class AppQueues(framework.App):
    """The applications, the switches, and both together."""

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]
    _CONTEXTS = {'qos': Qos}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.qos: Qos = kwargs['qos']
        self.switches: Dict[int, Any] = {}
        self.ports: Dict[int, Dict[bytes, int]] = {}    # dpid -> MAC address -> port
        self.apps: Dict[str, Dict[str, Any]] = {}
        self.one_at_a_time = hub.Semaphore(1)   # clients, and switches that connect
        host, _, port = LISTEN.rpartition(':')
        self.rest = ThreadingHTTPServer((host, int(port)), lambda *peer: Client(self, *peer))
        hub.spawn(self.rest.serve_forever)

    # --------------------------------------------------------------- switches

    @handler.set_ev_cls(ofp_event.EventOFPStateChange,
                        [handler.MAIN_DISPATCHER, handler.DEAD_DISPATCHER])
    def on_state(self, ev: Any) -> None:
        dp = ev.datapath
        if ev.state != handler.MAIN_DISPATCHER:
            if self.switches.get(dp.id) is dp:
                del self.switches[dp.id]
            return
        self.ports[dp.id] = {}
        p, o = dp.ofproto_parser, dp.ofproto
        dp.send_msg(p.OFPFlowMod(dp, table_id=o.OFPTT_ALL, command=o.OFPFC_DELETE,
                                 out_port=o.OFPP_ANY, out_group=o.OFPG_ANY))
        self.flow(dp, APPS_TABLE, 0, {}, [], goto=LEARNING_TABLE)
        self.flow(dp, LEARNING_TABLE, 0, {},
                  [p.OFPActionOutput(o.OFPP_CONTROLLER, o.OFPCML_NO_BUFFER)])
        with self.one_at_a_time:
            self.switches[dp.id] = dp
            for app in self.apps.values():
                try:
                    self.install(dp, app)
                except (BadRequest, Refused, OSError) as e:
                    self.logger.error('switch %016x, %s: %s', dp.id, app['name'], e)

    @staticmethod
    def flow_mod(dp: Any, table: int, priority: int, match: Dict[str, Any], actions: List[Any],
                 goto: Optional[int] = None, cookie: int = 0) -> Any:
        p, o = dp.ofproto_parser, dp.ofproto
        instructions = [p.OFPInstructionActions(o.OFPIT_APPLY_ACTIONS, actions)] if actions else []
        if goto is not None:
            instructions.append(p.OFPInstructionGotoTable(goto))
        return p.OFPFlowMod(dp, table_id=table, priority=priority, cookie=cookie,
                            match=p.OFPMatch(**match), instructions=instructions)

    def flow(self, dp: Any, *args: Any, **kwargs: Any) -> None:
        dp.send_msg(self.flow_mod(dp, *args, **kwargs))

    @handler.set_ev_cls(ofp_event.EventOFPPacketIn, handler.MAIN_DISPATCHER)
    def on_packet_in(self, ev: Any) -> None:
        """The learning switch."""
        dp, data = ev.msg.datapath, ev.msg.data
        p, o = dp.ofproto_parser, dp.ofproto
        in_port = ev.msg.match['in_port']
        eth = packet.Packet(data).get_protocols(ethernet.ethernet)[0]
        known = self.ports.setdefault(dp.id, {})
        known[eth.src] = in_port
        out = known.get(eth.dst, o.OFPP_FLOOD)
        if out != o.OFPP_FLOOD:
            self.flow(dp, LEARNING_TABLE, 1,
                      {'in_port': in_port, 'eth_dst': eth.dst}, [p.OFPActionOutput(out)])
        dp.send_msg(p.OFPPacketOut(dp, buffer_id=o.OFP_NO_BUFFER, in_port=in_port, data=data,
                                   actions=[p.OFPActionOutput(out)]))

    # ----------------------------------------------------------- applications

    def add(self, asked: Dict[str, Any]) -> Dict[str, Any]:
        app = checked(asked)
        if app['name'] in self.apps:
            raise BadRequest(409, f"{app['name']} is there already")
        used = {a['queue'] for a in self.apps.values()}
        app['queue'] = next(q for q in range(1, MAX_QUEUE + 1) if q not in used)
        done: List[Any] = []
        self.apps[app['name']] = app
        try:
            for dp in list(self.switches.values()):
                self.install(dp, app)
                done.append(dp)
        except BaseException:
            del self.apps[app['name']]
            for dp in done:
                self.qos.bundle(dp, *self.removal(dp, app))
            raise
        return app

    def install(self, dp: Any, app: Dict[str, Any]) -> None:
        p = dp.ofproto_parser
        queue = app['queue']
        changes: List[Any] = [
            request('htb', 'replace', port, queue, rate=app['rate'], ceil=app['ceil'])
            for port in self.ports_of(dp, app)]
        try:
            changes += [self.flow_mod(dp, APPS_TABLE, APP_PRIORITY, match,
                                      [p.OFPActionSetQueue(queue)], LEARNING_TABLE,
                                      COOKIE | queue) for match in matches(app['match'])]
            for match in matches(app['match']):
                check_numbers(p.OFPMatch, match)
        except Exception as e:      # os-ken says no more than that about a match
            raise BadRequest(400, f'match: {e!r}') from e
        self.qos.bundle(dp, *changes)

    @staticmethod
    def ports_of(dp: Any, app: Dict[str, Any]) -> List[int]:
        if app['port']:
            return [app['port']]
        return sorted(no for no in dp.ports if no <= dp.ofproto.OFPP_MAX)

    def removal(self, dp: Any, app: Dict[str, Any]) -> List[Any]:
        p, o = dp.ofproto_parser, dp.ofproto
        there = {e.port for e in self.qos.dump(dp)
                 if e.is_class and e.class_id == app['queue']}
        queues: List[Request] = [request('htb', 'del', port, app['queue'])
                                 for port in self.ports_of(dp, app) if port in there]
        flows = p.OFPFlowMod(dp, table_id=APPS_TABLE, command=o.OFPFC_DELETE,
                             cookie=COOKIE | app['queue'], cookie_mask=(1 << 64) - 1,
                             out_port=o.OFPP_ANY, out_group=o.OFPG_ANY)
        return [flows, *queues]

    def remove(self, name: str) -> None:
        app = self.find(name)
        for dp in list(self.switches.values()):
            self.qos.bundle(dp, *self.removal(dp, app))
        del self.apps[name]

    def find(self, name: str) -> Dict[str, Any]:
        if name not in self.apps:
            raise BadRequest(404, f'there is no application {name}')
        return self.apps[name]

    def shown(self, apps: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
        """With the counters of their queues, by switch and port."""
        dumps = {f'{dp.id:016x}': self.qos.dump(dp) for dp in list(self.switches.values())}
        return [dict(app, queues=[
            {'switch': dpid, 'port': e.port, 'bytes': e.counters.bytes,
             'packets': e.counters.packets, 'drops': e.counters.drops}
            for dpid, entries in dumps.items() for e in entries
            if e.is_class and e.class_id == app['queue']]) for app in apps]

    # ------------------------------------------------------------------- REST

    def answer(self, method: str, path: str, body: bytes) -> Tuple[int, Any]:
        """-> HTTP status and what is sent as JSON"""
        words = [word for word in path.split('/') if word]
        if words[:1] != ['apps'] or len(words) > 2:
            raise BadRequest(404, '/apps and /apps/NAME are what there is')
        if method == 'POST' and len(words) == 1:
            return 201, self.add(as_json(body))
        if method == 'GET' and len(words) == 1:
            return 200, self.shown(list(self.apps.values()))
        if method == 'GET':
            return 200, self.shown([self.find(words[1])])[0]
        if method == 'DELETE' and len(words) == 2:
            self.remove(words[1])
            return 204, None
        raise BadRequest(405, f'{method} is not for {path}')

    def answered(self, client: 'Client', body: bytes) -> Tuple[int, Any]:
        try:
            with self.one_at_a_time:
                return self.answer(client.command, client.path, body)
        except BadRequest as e:
            return e.status, {'error': str(e)}
        except Refused as e:
            return 409, {'error': f'the switch refused: {e}'}
        except OSError as e:
            return 503, {'error': str(e)}
        except Exception as e:
            self.logger.exception('%s %s', client.command, client.path)
            return 500, {'error': repr(e)}


class Client(BaseHTTPRequestHandler):
    """A request of a client, in a thread of its own."""
    timeout = 10                    # seconds

    def __init__(self, app: AppQueues, *peer: Any) -> None:
        self.app = app
        super().__init__(*peer)

    def do(self) -> None:
        length = self.headers.get('Content-Length', '0')
        if length.isdigit() and int(length) <= MOST_BODY:
            status, answer = self.app.answered(self, self.rfile.read(int(length)))
        else:
            status, answer = 413, {'error': f'a request has at most {MOST_BODY} bytes, and says how many'}
        data = b'' if answer is None else json.dumps(answer).encode() + b'\n'
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = do

    def log_message(self, format: str, *args: Any) -> None:
        self.app.logger.info('%s: ' + format, self.client_address[0], *args)


def as_json(body: bytes) -> Dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError as e:
        raise BadRequest(400, f'no JSON: {e}') from e
    if not isinstance(found, dict):
        raise BadRequest(400, 'an object is needed')
    return found


def checked(asked: Dict[str, Any]) -> Dict[str, Any]:
    """What a client asked for, as it is kept."""
    unknown = set(asked) - {'name', 'rate', 'ceil', 'port', 'match'}
    name, match, port = asked.get('name'), asked.get('match'), asked.get('port') or 0
    if unknown:
        raise BadRequest(400, f'unknown: {", ".join(sorted(unknown))}')
    if not isinstance(name, str) or not name or '/' in name:
        raise BadRequest(400, 'a name without a slash is needed')
    if not isinstance(match, dict) or not match:
        raise BadRequest(400, 'a match is needed')
    if not isinstance(port, int):
        raise BadRequest(400, 'port is a number')
    try:
        rate = parse_rate(str(asked.get('rate', '')))
        ceil = parse_rate(str(asked['ceil'])) if asked.get('ceil') else rate
    except ValueError as e:
        raise BadRequest(400, str(e)) from e
    return {'name': name, 'rate': rate, 'ceil': ceil, 'port': port, 'match': match}


def check_numbers(match_class: Any, match: Dict[str, Any]) -> None:
    """os-ken and Ryu cut a number that is too large to its field's size: ValueError."""
    made = match_class(**match)
    for name, value in match.items():
        if isinstance(value, int) and made.get(name) != value:
            raise ValueError(f'{name}={value} is too large')


def matches(match: Dict[str, Any]) -> List[Dict[str, Any]]:
    """What the flows match: a port of TCP or UDP goes with its protocol, and without a word about
    the network layer both IPv4 and IPv6 are meant."""
    full = {k: tuple(v) if isinstance(v, list) else v for k, v in match.items()}
    for name, number in IP_PROTOS.items():
        if any(field.startswith(name + '_') for field in match):
            full.setdefault('ip_proto', number)
    if 'eth_type' in full or not any(f.startswith(('ip_', 'ipv4_', 'ipv6_')) for f in full):
        return [full]
    for version, eth_type in zip(('ipv4_', 'ipv6_'), ETH_TYPES):
        if any(field.startswith(version) for field in match):
            return [dict(full, eth_type=eth_type)]
    return [dict(full, eth_type=eth_type) for eth_type in ETH_TYPES]
