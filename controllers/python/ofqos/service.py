# SPDX-License-Identifier: Apache-2.0
"""Sending and waiting, inside os-ken or Ryu.

An application asks for the service by its _CONTEXTS and calls it from wherever it likes, its own
event handlers included: the service hears the switches in a thread of its own.

    class Mine(app_manager.OSKenApp):
        _CONTEXTS = {'qos': Qos}

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.qos = kwargs['qos']

        @set_ev_cls(ofp_event.EventOFPStateChange, MAIN_DISPATCHER)
        def on_switch(self, ev):
            self.qos.send(ev.datapath, request('htb', 'add', port=2, class_id=10, rate='6mbit'))
"""
from __future__ import annotations

import random
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, TypeVar, Union

from . import framework, wire
from .errors import Refused, parse_error
from .replies import (Entry, Kernel, Latency, PortQueues, Served, parse_counters, parse_dump, parse_kernel,
                      parse_latency, parse_ports, parse_service)
from .request import Request
from .table import ALL_CLASSES, PORT_ANY

_ALIVE = [framework.handler.CONFIG_DISPATCHER, framework.handler.MAIN_DISPATCHER]
_EVENTS = [getattr(framework.ofp_event, name) for name in (
    'EventOFPErrorMsg', 'EventOFPBarrierReply', 'EventOFPExperimenter', 'EventONFBundleCtrlMsg',
    'EventOFPExperimenterStatsReply', 'EventOFPFlowStatsReply', 'EventOFPPortDescStatsReply',
    'EventOFPAggregateStatsReply', 'EventOFPQueueStatsReply',
    'EventOFPRoleReply') if hasattr(framework.ofp_event, name)]
_SECONDS = 10.0

Reply = TypeVar('Reply')


class Disconnected(ConnectionError):
    """The switch went away before it answered: whether the request was carried out is not
    known."""


class QosMessage(framework.MsgBase):  # type: ignore[misc]
    """A request as a message of the framework's, for Datapath.send_msg, which does not wait."""

    def __init__(self, datapath: Any, request: Request,
                 envelope: str = wire.IN_EXPERIMENTER) -> None:
        super().__init__(datapath)
        self.request, self.envelope = request, envelope

    def serialize(self) -> None:
        self.buf = bytearray(wire.qos(self.request, self.xid or 0, self.envelope))


Message = Union[Request, bytes, Any]     # a Request, a whole message, or one of the framework's


class Prepared(NamedTuple):
    """A bundle that a switch has, and that is neither committed nor discarded."""
    datapath: Any
    number: int
    xids: List[int]         # of its messages, and of its opening
    timeout: float


class _Waiter:
    """Everything that is heard about some xids, until the one that ends it."""

    def __init__(self, xids: Sequence[int], last: int) -> None:
        self.xids, self.last = set(xids) | {last}, last
        self.heard: List[bytes] = []
        self.over = framework.hub.Queue()    # True: all is heard; False: the switch is gone


class Qos(framework.App):  # type: ignore[misc]
    """The service.  Its methods return when the switch has carried out what was sent, and raise
    Refused (SchedFailed, BundleFailed), Disconnected, or TimeoutError."""

    OFP_VERSIONS = [framework.ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting: Dict[Tuple[Any, int], _Waiter] = {}

    # ---------------------------------------------------------------- changing

    def send(self, datapath: Any, *requests: Request, envelope: str = wire.IN_EXPERIMENTER,
             timeout: float = _SECONDS) -> None:
        """Sends requests and waits until the kernel has them.  Each is tried, whatever becomes of
        the others; the first error is raised, its `index` says which request it is about."""
        for error in self.results(datapath, *requests, envelope=envelope, timeout=timeout):
            if error:
                raise error

    def results(self, datapath: Any, *requests: Request, envelope: str = wire.IN_EXPERIMENTER,
                timeout: float = _SECONDS) -> List[Optional[Refused]]:
        """As send(), but returns for each request None or the error that it was refused with."""
        xids = self._xids(datapath, len(requests) + 1)
        stream = b''.join(wire.qos(r, xid, envelope) for r, xid in zip(requests, xids))
        heard = self._exchange(datapath, stream + wire.barrier(xids[-1]), xids, timeout)
        errors = _errors(heard, xids[:-1])
        return [errors.get(i) for i in range(len(requests))]

    def tell(self, datapath: Any, *messages: Message, timeout: float = _SECONDS) -> None:
        """Sends messages that have no answer, and waits until they were carried out.  The first error is
        raised."""
        xids = self._xids(datapath, len(messages) + 1)
        stream = b''.join(_serialized(m, xid, wire.IN_EXPERIMENTER) for m, xid in zip(messages, xids))
        heard = self._exchange(datapath, stream + wire.barrier(xids[-1]), xids, timeout)
        _raise_first(heard, xids[:-1], len(messages))

    def bundle(self, datapath: Any, *messages: Message, envelope: str = wire.IN_EXPERIMENTER,
               timeout: float = _SECONDS) -> None:
        """Sends several changes as one: requests, and the framework's flow, group, meter and port
        mods (or any as bytes), in any mixture.  All are carried out, or none: then the error of the message that
        did not succeed is raised, its `index` says which."""
        self.commit(self.prepare(datapath, *messages, envelope=envelope, timeout=timeout))

    def prepare(self, datapath: Any, *messages: Message, envelope: str = wire.IN_EXPERIMENTER,
                timeout: float = _SECONDS) -> 'Prepared':
        """The first half of bundle(): the switch has all of it, and has checked the form of each.
        It keeps it for ten seconds.  What it refuses is raised, and discarded."""
        xids = self._xids(datapath, len(messages) + 2)
        inner = [_serialized(m, xid, envelope) for m, xid in zip(messages, xids)]
        own = [*(wire.split(raw)[1] for raw in inner), xids[-2]]
        made = Prepared(datapath, random.getrandbits(32), own, timeout)
        stream = wire.bundle_control(wire.OPEN_REQUEST, made.number, xids[-2])
        stream += b''.join(wire.bundle_add(raw, made.number) for raw in inner)
        heard = self._exchange(datapath, stream + wire.barrier(xids[-1]), [*own, xids[-1]], timeout)
        try:
            _raise_first(heard, own, len(inner))
        except Refused:
            self.discard(made)
            raise
        return made

    def commit(self, prepared: 'Prepared') -> None:
        """Carries it out, all or nothing; raises as bundle()."""
        commit, last = self._xids(prepared.datapath, 2)
        stream = wire.bundle_control(wire.COMMIT_REQUEST, prepared.number, commit)
        xids = [*prepared.xids, commit, last]
        heard = self._exchange(prepared.datapath, stream + wire.barrier(last), xids,
                               prepared.timeout)
        _raise_first(heard, xids[:-1], len(prepared.xids) - 1)
        if not any(_is_commit(raw, commit) for raw in heard):
            raise Disconnected('the switch did not answer the commit')

    def discard(self, prepared: 'Prepared') -> None:
        """The switch forgets it; nobody waits for that."""
        xid, = self._xids(prepared.datapath, 1)
        prepared.datapath.send(bytearray(wire.bundle_control(wire.DISCARD_REQUEST, prepared.number,
                                                             xid)))

    # ------------------------------------------------------------------ asking

    def dump(self, datapath: Any, port: int = PORT_ANY, class_id: int = ALL_CLASSES,
             timeout: float = _SECONDS) -> List[Entry]:
        """QOS_DUMP: what is on a port (or all), with counters."""
        return self._ask(datapath, lambda xid: wire.ask_dump(xid, port, class_id), parse_dump,
                         timeout)

    def ports(self, datapath: Any, timeout: float = _SECONDS) -> List[PortQueues]:
        """QOS_PORTS: each port's queues as a whole."""
        return self._ask(datapath, lambda xid: wire.ask(wire.QOS_PORTS, xid), parse_ports, timeout)

    def kernel(self, datapath: Any, timeout: float = _SECONDS) -> Kernel:
        """KERNEL: which schedulers the switch's kernel has."""
        return self._ask(datapath, lambda xid: wire.ask(wire.KERNEL, xid), parse_kernel, timeout)

    def served(self, datapath: Any, timeout: float = _SECONDS) -> List[Served]:
        """SERVICE: how each class is served, since the switch began to look: the first call, or a
        class with a promise, makes it."""
        return self._ask(datapath, lambda xid: wire.ask(wire.SERVICE, xid), parse_service, timeout)

    def latency(self, datapath: Any, port: int = PORT_ANY, class_id: int = ALL_CLASSES,
                timeout: float = _SECONDS) -> List[Latency]:
        """QOS_LATENCY: round trips and waiting times by queue."""
        return self._ask(datapath, lambda xid: wire.ask_latency(xid, port, class_id), parse_latency, timeout)

    def flows(self, datapath: Any, cookie: int = 0, mask: int = 0,
              timeout: float = _SECONDS) -> List[Any]:
        """The framework's OFPFlowStats of all flows whose cookie has these bits."""
        p, o = datapath.ofproto_parser, datapath.ofproto
        asked = p.OFPFlowStatsRequest(datapath, 0, o.OFPTT_ALL, o.OFPP_ANY, o.OFPG_ANY, cookie, mask)
        xid, last = self._xids(datapath, 2)
        raw = _serialized(asked, xid, wire.IN_EXPERIMENTER)
        heard = self._exchange(datapath, raw + wire.barrier(last), [xid, last], timeout)
        for error in _errors(heard, [xid]).values():
            raise error
        parts = [p.OFPMultipartReply.parser(datapath, *wire.HEADER.unpack_from(part), part)
                 for part in heard if wire.split(part)[1] == xid]
        if not parts or parts[-1].flags & o.OFPMPF_REPLY_MORE:
            raise Disconnected('the switch did not answer in full')
        return [flow for part in parts for flow in part.body]

    def ask(self, datapath: Any, build: Callable[[int], bytes], timeout: float = _SECONDS) -> List[bytes]:
        """Sends the message that build(xid) makes, one that the switch answers -> its answers, as bytes."""
        xid, last = self._xids(datapath, 2)
        heard = self._exchange(datapath, build(xid) + wire.barrier(last), [xid, last], timeout)
        for error in _errors(heard, [xid]).values():
            raise error
        found = [raw for raw in heard if wire.split(raw)[1] == xid]
        if not found:
            raise Disconnected('the switch did not answer')
        return found

    def counters(self, datapath: Any, timeout: float = _SECONDS) -> Dict[str, int]:
        """COUNTERS: what was dropped, refused or lost, by reason."""
        return self._ask(datapath, lambda xid: wire.ask(wire.COUNTERS, xid), parse_counters,
                         timeout)

    def _ask(self, datapath: Any, build: Callable[[int], bytes],
             parse: Callable[[bytes], Reply], timeout: float) -> Reply:
        xid, last = self._xids(datapath, 2)
        heard = self._exchange(datapath, build(xid) + wire.barrier(last), [xid, last], timeout)
        for error in _errors(heard, [xid]).values():
            raise error
        parts = [wire.parse_part(raw) for raw in heard if wire.split(raw)[1] == xid]
        if not parts or parts[-1].more:
            raise Disconnected('the switch did not answer in full')
        return parse(b''.join(part.data for part in parts))

    # ----------------------------------------------------------------- waiting

    def _xids(self, datapath: Any, n: int) -> List[int]:
        """Numbers that nobody waits for.  The datapath's own counter is not used: it is not made
        for several threads."""
        found: Set[int] = set()
        while len(found) < n:
            xid = random.randrange(1, 1 << 32)
            if (datapath, xid) not in self._waiting:
                found.add(xid)
        return list(found)

    def _exchange(self, datapath: Any, stream: bytes, xids: Sequence[int],
                  timeout: float) -> List[bytes]:
        """Sends it all in one go; what was heard of the xids up to the answer to the last."""
        waiter = _Waiter(xids, xids[-1])
        for xid in waiter.xids:
            self._waiting[datapath, xid] = waiter
        try:
            if not datapath.send(bytearray(stream)) and not datapath.is_active:
                raise Disconnected('the switch is not connected')
            # Before the waiter was there: its end was told to others.
            if datapath.state == framework.handler.DEAD_DISPATCHER:
                raise Disconnected('the switch went away')
            if not waiter.over.get(timeout=timeout):
                raise Disconnected('the switch went away')
        except framework.hub.QueueEmpty:
            raise TimeoutError(f'no answer within {timeout} s') from None
        finally:
            for xid in waiter.xids:
                self._waiting.pop((datapath, xid), None)
        return waiter.heard

    @framework.handler.set_ev_cls(_EVENTS, _ALIVE)  # type: ignore
    def _on_message(self, ev: Any) -> None:
        waiter = self._waiting.get((ev.msg.datapath, ev.msg.xid))
        if waiter is None:
            return
        raw = bytes(ev.msg.buf)
        if ev.msg.xid == waiter.last:
            waiter.over.put(True)
        else:
            waiter.heard.append(raw)

    @framework.handler.set_ev_cls(  # type: ignore
        framework.ofp_event.EventOFPStateChange, framework.handler.DEAD_DISPATCHER)
    def _on_dead(self, ev: Any) -> None:
        gone = [w for (dp, _), w in list(self._waiting.items()) if dp is ev.datapath]
        for waiter in gone:
            waiter.over.put(False)


def _serialized(message: Message, xid: int, envelope: str) -> bytes:
    if isinstance(message, Request):
        return wire.qos(message, xid, envelope)
    if isinstance(message, bytes):
        return wire.with_xid(message, xid)
    if message.xid is None:
        message.set_xid(xid)
    message.serialize()
    return bytes(message.buf)


def _errors(heard: Sequence[bytes], xids: Sequence[int]) -> Dict[int, Refused]:
    """Index into xids -> the error that is about it."""
    index = {xid: i for i, xid in enumerate(xids)}
    found: Dict[int, Refused] = {}
    for raw in heard:
        kind, xid, _ = wire.split(raw)
        if kind == wire.T_ERROR and xid in index:
            error = parse_error(raw)
            error.index = index[xid]
            found.setdefault(error.index, error)
    return found


def _raise_first(heard: Sequence[bytes], xids: Sequence[int], messages: int) -> None:
    """The first error.  Those of xids behind the messages' are about the bundle as a whole."""
    errors = _errors(heard, xids)
    if errors:
        error = errors[min(errors)]
        if error.index is not None and error.index >= messages:
            error.index = None
        raise error


def _is_commit(raw: bytes, xid: int) -> bool:
    kind, its_xid, _ = wire.split(raw)
    return (kind == wire.T_EXPERIMENTER and its_xid == xid
            and wire.parse_bundle(raw).kind == wire.COMMIT_REPLY)
