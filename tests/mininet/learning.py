# SPDX-License-Identifier: Apache-2.0
"""A small learning controller for many switches: learning.py PORT, until it is ended."""
import os
import select
import socket
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support import of13  # noqa: E402


class Switch:
    def __init__(self, sock):
        # Mininet asks by telnet whether a controller listens, and reads its hello as UTF-8.
        self.conn = of13.Conn(sock, xid=0)
        self.port_of = {}
        self.conn.flow(of13.apply_actions(of13.output(of13.P_CONTROLLER)), priority=0)
        for msg in self.conn.inbox:              # came before the barrier's reply
            self.on_message(msg)

    def on_packet(self, m):
        data, in_port = m['data'], struct.unpack('!I', m['match']['in_port'])[0] \
            if isinstance(m['match']['in_port'], bytes) else m['match']['in_port']
        dst, src = data[:6], data[6:12]
        self.port_of[src] = in_port
        out = self.port_of.get(dst, of13.P_FLOOD)
        if out != of13.P_FLOOD:
            self.conn.send(of13.FLOW_MOD, of13.flow_mod(
                match=of13.match(in_port=in_port, eth_dst=dst),
                instructions=[of13.apply_actions(of13.output(out))]))
        self.conn.send(of13.PACKET_OUT, of13.packet_out(data, [of13.output(out)], in_port=in_port))

    def on_message(self, msg):
        if msg.type == of13.PACKET_IN:
            self.on_packet(of13.parse_packet_in(msg.body))

    def run(self):
        """What has come: several messages, or only an echo request, which is answered."""
        wait = 0.01
        while True:
            try:
                msg = self.conn.recv(wait)
            except TimeoutError:
                return
            self.on_message(msg)
            wait = 0


def main(port):
    listener = socket.create_server(('127.0.0.1', port))
    switches = {}
    while True:
        for sock in select.select([listener, *switches], [], [])[0]:
            try:
                if sock is listener:
                    new = listener.accept()[0]
                    switches[new] = Switch(new)
                else:
                    switches[sock].run()
            except (of13.Closed, OSError, TimeoutError):
                switches.pop(sock, None)


main(int(sys.argv[1]))
