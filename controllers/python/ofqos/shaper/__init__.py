# SPDX-License-Identifier: Apache-2.0
"""ofqos shaper: a list of customers and a tree of sites, as queues and flows of one switch (docs/how-to/subscribers.md)."""
