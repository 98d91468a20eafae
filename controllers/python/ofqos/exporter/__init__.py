# SPDX-License-Identifier: Apache-2.0
"""ofqos-exporter: the metrics of many switches, for Prometheus (docs/how-to/exporter.md)."""
