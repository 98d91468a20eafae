# SPDX-License-Identifier: Apache-2.0
"""An application for os-ken or Ryu that uses every call of the package's service, in its own
handler's thread, and prints what came of it, one JSON value a line."""
import json
import traceback

from ofqos import Refused, framework, request
from ofqos.framework import handler, ofp_event, ofproto_v1_3
from ofqos.service import Disconnected, Qos, QosMessage


def say(**what):
    print(json.dumps(what), flush=True)


class ServiceCheck(framework.App):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]
    _CONTEXTS = {'qos': Qos}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.qos = kwargs['qos']

    def refused(self, name, call, *args, **kw):
        try:
            call(*args, **kw)
            say(step=name, refused=None)
        except Refused as e:
            say(step=name, refused=getattr(e, 'name', str(e)), index=e.index,
                text=getattr(e, 'text', ''))

    def queues(self, dp):
        return sorted((e.port, e.class_id) for e in self.qos.dump(dp) if e.is_class and
                      e.class_id <= 0xffef and e.class_id)

    @handler.set_ev_cls(ofp_event.EventOFPStateChange, handler.MAIN_DISPATCHER)
    def on_switch(self, ev):
        try:
            self.check(ev.datapath)
        except Exception:
            say(step='failed', why=traceback.format_exc())
        say(step='end', framework=framework.NAME)

    def check(self, dp):
        qos = self.qos
        add = [request('htb', 'add', 1, q, rate=f'{q}mbit') for q in (3, 4)]
        qos.send(dp, *add)
        qos.send(dp, request('htb', 'add', 2, 5, rate='5mbit', ceil='8mbit'),
                 envelope='native')
        say(step='send', queues=self.queues(dp))
        self.refused('exists', qos.send, dp, request('htb', 'add', 1, 9, rate='1mbit'), add[1])
        self.refused('native', qos.send, dp, request('htb', 'change', 1, 77, rate='1mbit'),
                     envelope='native')
        say(step='results', results=[e and e.name for e in qos.results(
            dp, add[0], request('htb', 'del', 1, 9), request('sfq', 'add', 99, 1))])
        dp.send_msg(QosMessage(dp, request('htb', 'add', 2, 6, rate='1mbit')))
        p, o = dp.ofproto_parser, dp.ofproto
        flow = p.OFPFlowMod(dp, priority=7, match=p.OFPMatch(in_port=1), instructions=[
            p.OFPInstructionActions(o.OFPIT_APPLY_ACTIONS, [p.OFPActionSetQueue(11)])])
        qos.bundle(dp, request('htb', 'add', 2, 11, rate='1mbit'), flow,
                   request('pfifo', 'add', 2, 11, limit=50))
        say(step='bundle', queues=self.queues(dp))
        self.refused('bundle refused', qos.bundle, dp, request('htb', 'add', 2, 12, rate='1mbit'),
                     request('htb', 'del', 2, 11, with_children=True),
                     request('htb', 'add', 2, 5, rate='1mbit'))
        say(step='bundle undone', queues=self.queues(dp))
        self.refused('bundle malformed', qos.bundle, dp,
                     request('htb', 'add', 2, 12, rate='1mbit'),
                     request('htb', 'add', 2, 13, rate='9mbit', ceil='1mbit'))
        say(step='dump', dump=[[e.class_id, str(e.config)] for e in qos.dump(dp, 2, 11)])
        self.refused('dump refused', qos.dump, dp, 99)
        say(step='ports', ports=[[q.port, q.direction, q.scheduler, q.queues]
                                 for q in qos.ports(dp)])
        kernel = qos.kernel(dp)
        say(step='kernel', release=kernel.release, htb=kernel.schedulers['htb'])
        say(step='served', ratios=[s.kept for s in qos.served(dp) if s.class_id == 11])
        say(step='counters', some=len(qos.counters(dp)) > 5)
        qos.send(dp, request('none', 'del', 1), request('none', 'del', 2))
        say(step='clear', queues=self.queues(dp))
        many = [request('htb', 'add', 1, q, rate='1mbit') for q in range(1, 301)]
        qos.bundle(dp, *many, timeout=60)
        say(step='many', queues=len(self.queues(dp)))
        qos.send(dp, request('none', 'del', 1), timeout=60)
        dp.close()
        try:
            qos.dump(dp, timeout=5)
        except (Disconnected, TimeoutError) as e:
            say(step='gone', error=type(e).__name__)
