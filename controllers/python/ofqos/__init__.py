# SPDX-License-Identifier: Apache-2.0
"""The QoS message of the ofqos switch, for controllers written in Python.

This much is pure, without any dependency: requests, what switches answer, and both as bytes.
`ofqos.service` sends and waits inside os-ken or Ryu.
"""
from .changes import PromiseChange, QosChange, RoleChange, monitor, parse_change
from .errors import BundleFailed, Refused, SchedFailed, parse_error
from .replies import (Counters, Entry, Figures, Kernel, Latency, PortQueues, Served, parse_counters, parse_dump,
                      parse_kernel, parse_latency, parse_ports, parse_service)
from .request import Request, request
from .table import (ALL_CLASSES, DEFAULT_CLASS, MAX_QUEUE, PORT_ANY, PORT_LOCAL, PROPERTIES,
                    ROOT_CLASS, SCHEDULERS)
from .units import Curve, Precedence, format_rate, parse_rate
from .wire import IN_EXPERIMENTER, NATIVE, parse_qos, qos

__version__ = '0.2.0'
__all__ = [
    'ALL_CLASSES', 'BundleFailed', 'Counters', 'Curve', 'DEFAULT_CLASS', 'Entry', 'Figures',
    'IN_EXPERIMENTER', 'Kernel', 'Latency', 'MAX_QUEUE', 'NATIVE', 'PORT_ANY', 'PORT_LOCAL', 'PROPERTIES',
    'PortQueues', 'Precedence', 'PromiseChange', 'QosChange', 'ROOT_CLASS', 'Refused', 'Request', 'RoleChange',
    'SCHEDULERS', 'SchedFailed', 'Served', 'format_rate', 'monitor', 'parse_change', 'parse_counters', 'parse_dump',
    'parse_error', 'parse_kernel', 'parse_latency', 'parse_ports', 'parse_qos', 'parse_rate', 'parse_service', 'qos', 'request',
]
