# SPDX-License-Identifier: Apache-2.0
"""What queues, ports and switches did: a day at 10 s, 30 days at 5 min, in one SQLite file."""
