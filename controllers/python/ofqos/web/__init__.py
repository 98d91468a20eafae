# SPDX-License-Identifier: Apache-2.0
"""Switches and their queues in a browser (docs/how-to/web.md)."""
