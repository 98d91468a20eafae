# SPDX-License-Identifier: Apache-2.0
"""ofqos-network: one policy file for the queues of many switches (docs/how-to/network.md)."""
