# SPDX-License-Identifier: Apache-2.0
"""Reservations along a whole path: a rate on every hop, or on none (docs/how-to/reservations.md).

`graph`, `books` and `engine` decide; `app` has the switches, `rest` the requests."""
