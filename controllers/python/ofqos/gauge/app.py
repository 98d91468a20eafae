# SPDX-License-Identifier: Apache-2.0
"""Gauge with watchers for queues, an application of os-ken: `ofqos-gauge` starts it."""
from __future__ import annotations

import importlib
from typing import Any

from .watchers import install

_gauge: Any = importlib.import_module('faucet.gauge')
_event: Any = importlib.import_module('os_ken.controller.ofp_event')
_handler: Any = importlib.import_module('os_ken.controller.handler')

install(_gauge)

_OURS = {_event.EventOFPQueueStatsReply: 'queue_stats', _event.EventOFPExperimenterStatsReply: 'queue_state'}


class QueueGauge(_gauge.Gauge):  # type: ignore[misc]
    """Gauge, which also hears of queues"""

    @_handler.set_ev_cls(list(_OURS), _handler.MAIN_DISPATCHER)  # type: ignore
    def on_queues(self, event: Any) -> None:
        self._update_watcher(_OURS[type(event)], event)
