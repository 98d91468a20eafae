# SPDX-License-Identifier: Apache-2.0
"""A controller application as one writes it with os-ken: a learning switch that gives what leaves by
port 2 a queue of 5 Mbit/s, by the QoS message in its experimenter envelope."""
import struct

from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_3

QOS = 0x514f5346
QUEUE = 7


class LearningSwitch(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.port_of = {}

    @staticmethod
    def flow(dp, priority, match, actions):
        p, o = dp.ofproto_parser, dp.ofproto
        dp.send_msg(p.OFPFlowMod(dp, priority=priority, match=match, instructions=[
            p.OFPInstructionActions(o.OFPIT_APPLY_ACTIONS, actions)]))

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def on_features(self, ev):
        dp = ev.msg.datapath
        p, o = dp.ofproto_parser, dp.ofproto
        htb_class = struct.pack('!B3xBB2xIIQQI4x', 1, 1, 0, 2, QUEUE, 5_000_000, 0, 1)
        dp.send_msg(p.OFPExperimenter(dp, QOS, 1, htb_class))
        dp.send_msg(p.OFPBarrierRequest(dp))
        self.flow(dp, 0, p.OFPMatch(),
                  [p.OFPActionOutput(o.OFPP_CONTROLLER, o.OFPCML_NO_BUFFER)])

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def on_error(self, ev):
        print('ERROR', ev.msg.type, ev.msg.code, flush=True)

    @set_ev_cls(ofp_event.EventOFPBarrierReply, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def on_barrier(self, ev):
        print('READY', flush=True)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet_in(self, ev):
        dp, data = ev.msg.datapath, ev.msg.data
        p, o = dp.ofproto_parser, dp.ofproto
        in_port = ev.msg.match['in_port']
        eth = packet.Packet(data).get_protocols(ethernet.ethernet)[0]
        self.port_of[eth.src] = in_port
        out = self.port_of.get(eth.dst, o.OFPP_FLOOD)
        actions = [p.OFPActionSetQueue(QUEUE)] if out == 2 else []
        actions.append(p.OFPActionOutput(out))
        if out != o.OFPP_FLOOD:
            self.flow(dp, 10, p.OFPMatch(in_port=in_port, eth_dst=eth.dst), actions)
        dp.send_msg(p.OFPPacketOut(dp, buffer_id=o.OFP_NO_BUFFER, in_port=in_port,
                                   actions=actions, data=data))
