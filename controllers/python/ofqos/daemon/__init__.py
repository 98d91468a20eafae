# SPDX-License-Identifier: Apache-2.0
"""ofqosd: all services in one process, over one connection a switch (docs/how-to/ofqosd.md)."""
