# SPDX-License-Identifier: Apache-2.0
"""ofqos-operator: keeps pods' totals as objects of Kubernetes say (docs/how-to/cloud.md)."""
