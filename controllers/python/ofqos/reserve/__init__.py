# SPDX-License-Identifier: Apache-2.0
"""Reservations along a whole path: a rate on every hop, or on none (docs/how-to/reservations.md).

`graph`, `books` and `engine` decide, without a framework; `app` is the application for os-ken."""
