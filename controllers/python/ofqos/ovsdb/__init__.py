# SPDX-License-Identifier: Apache-2.0
"""An OVSDB server (RFC 7047) in front of switches: Open vSwitch's QoS and Queue tables set their queues
(docs/how-to/ovsdb.md)."""
