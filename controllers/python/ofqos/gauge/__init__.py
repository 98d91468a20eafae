# SPDX-License-Identifier: Apache-2.0
"""Queue statistics in Faucet's Gauge (docs/how-to/network.md): two watchers more.

queue_stats: what OpenFlow counts of a queue, of any maker's switch; queue_state: what the switch's
QOS_DUMP adds, drops, backlog and rates.  Gauge has no entry point for watchers of others, so
`install()` puts ours beside its own; `ofqos-gauge` starts Gauge with them.
"""
