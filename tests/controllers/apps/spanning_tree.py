# SPDX-License-Identifier: Apache-2.0
"""os-ken's learning switch over a spanning tree, with the shortest times that 802.1D knows."""
from os_ken.app import simple_switch_stp_13

SHORT = {'bridge': {'hello_time': 1, 'max_age': 6, 'fwd_delay': 4}}


class SpanningTree(simple_switch_stp_13.SimpleSwitch13):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.stp.set_config({n: SHORT for n in (1, 2, 3)})
