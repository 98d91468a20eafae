# SPDX-License-Identifier: Apache-2.0
"""One switch for all tests of a module, each of which finds it as it has started.

    ONE_SWITCH = True       # in a module whose tests look at no counter and at no line of the log's beginning

After each test all that it made is deleted.  A switch that is not then what it was at its start, or whose test has
failed, ends, and the next test starts another."""
import struct

from . import of13, qosmsg, status, tc
from .topo import Switch

STATE, MARK = 11, 40
DELETE = 2                  # of a group, a meter
# Of STATUS: what the switch has been told.  What it counts is not the same after a test.
TOLD = ('log', 'fail', 'bandwidth', 'cap', 'slice', 'capture', 'group')


class OneSwitch:
    def __init__(self, topology, *options):
        self.topology, self.options = topology, options
        self.running, self.at_first = None, None

    def take(self):
        if self.running and not self.running.alive():
            self.end()
        if not self.running:
            self.running = Switch(self.topology, *self.options)
            self.running.start()
            self.at_first = self.looks()
        return self.running

    def looks(self):
        with self.running.connect() as conn:
            told = {key: value for key, value in status.status(conn).items() if key.startswith(TOLD)}
            parts = conn.multipart_parts(of13.MP_EXPERIMENTER, struct.pack('!II', status.QOSF, STATE))
            saved = b''.join(part[8:] for part in parts)[MARK:-MARK]        # a mark has the time
            return [saved, conn.multipart_parts(of13.MP_PORT_DESC), conn.multipart_parts(of13.MP_TABLE_FEATURES),
                    conn.request(of13.GET_CONFIG_REQUEST).body, told]

    def give_back(self, failed):
        """-> whether the next test may have it"""
        try:
            if failed or not self.running.alive():
                self.end()
                return
            with self.running.connect() as conn:
                conn.ok(of13.FLOW_MOD, of13.flow_mod(of13.DELETE, table_id=of13.TT_ALL))
                conn.ok(of13.GROUP_MOD, of13.group_mod(DELETE, 0, of13.G_ALL))
                conn.ok(of13.METER_MOD, of13.meter_mod(DELETE, of13.M_ALL))
                qosmsg.send(conn, qosmsg.NATIVE, qosmsg.clear())
                qosmsg.send(conn, qosmsg.NATIVE, qosmsg.clear(direction=1))
        except BaseException:
            self.end()
            raise
        if self.looks() != self.at_first or self.left():
            self.end()

    def left(self):
        return any(tc.root(self.topology.switch_ns, name) for name in self.topology.port_names())

    def end(self):
        """All that Switch looks at when it ends, too"""
        running, self.running = self.running, None
        if running:
            running.__exit__(None)
