# SPDX-License-Identifier: Apache-2.0
"""The daemon's metrics of itself, by prometheus-client (docs/how-to/ofqosd.md)."""
from __future__ import annotations

import time
from typing import Any, Callable, Dict

from prometheus_client import CollectorRegistry, Counter, Gauge

from ..switches import Switches


class Counts:
    """Told of events, in the event loop."""

    def __init__(self, registry: CollectorRegistry, switches: Switches, lost: Callable[[], float]) -> None:
        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f'ofqosd_{name}', text, registry=registry)
        self.events = Counter('ofqosd_events', 'What has happened, by its kind', ['event'], registry=registry)
        self.active = gauge('policy_active', '1 while this instance keeps the policy, 0 while it stands by')
        self.revision = gauge('policy_revision', 'The revision that came into force last')
        self.applied = gauge('policy_applied_timestamp_seconds', 'When that was')
        gauge('switches_connected', 'Switches that are connected').set_function(lambda: len(switches))
        gauge('switches_not_reached', 'Configured addresses without a switch').set_function(
            lambda: sum(place.channel is None for place in switches.places))
        gauge('alerts_lost', 'Alerts that could not be sent').set_function(lost)

    def event(self, event: str, more: Dict[str, Any]) -> None:
        self.events.labels(event).inc()
        if event in ('active', 'standby'):
            self.active.set(event == 'active')
        elif event == 'in force':
            self.revision.set(more['revision'])
            self.applied.set(time.time())
