# SPDX-License-Identifier: Apache-2.0
"""Samples as text: one switch's, by metric."""
from __future__ import annotations

import functools
import re
from typing import Dict, List, Optional, Sequence, Union

from ..table import PORT_LOCAL
from .families import FAMILIES, OWN

_UNSAFE = re.compile(r'[\x00-\x1f\x7f"\\]')


@functools.lru_cache(65536)
def escaped(text: str) -> str:
    """As a label's value; control characters come from nowhere good and become question marks."""
    return _UNSAFE.sub(lambda found: f'\\{found[0]}' if found[0] in '"\\' else '?', text)


def labels_of(dp: Optional[str], **labels: str) -> str:
    pairs = [*([] if dp is None else [('dp', dp)]), *labels.items()]
    return ','.join([f'{name}="{escaped(value)}"' for name, value in pairs])


def label(port: int) -> str:
    return 'local' if port == PORT_LOCAL else str(port)


def rate_text(bits: int) -> str:
    """Bit/s as bytes/s, to the last digit"""
    whole, rest = divmod(bits, 8)
    return f'{whole}.{rest * 125:03d}' if rest else str(whole)


MOST = 100_000          # samples of a switch, but for those of its queues


class Lines:
    """One switch's samples.  ValueError: there are too many, of a switch that makes them up."""

    def __init__(self, dp: str) -> None:
        self.dp = dp
        self._n = 0
        self._lines: Dict[str, List[str]] = {}
        self._bulk: Dict[str, List[bytes]] = {}

    def put(self, metric: str, value: Union[int, float, str, None], **labels: str) -> None:
        """None: the switch doesn't have it."""
        if value is not None:
            self._n += 1
            if self._n > MOST and metric not in OWN:
                raise ValueError(f'more than {MOST} samples')
            self._lines.setdefault(metric, []).append(
                f'{FAMILIES[metric].sample}{{{labels_of(self.dp, **labels)}}} {value}\n')

    def histogram(self, metric: str, bounds: Sequence[int], counts: Sequence[int], total: int, **labels: str) -> None:
        """bounds and total in us; each place of what is written counts those before it, too."""
        name, mine, n = FAMILIES[metric].sample, labels_of(self.dp, **labels), 0
        lines = self._lines.setdefault(metric, [])
        for bound, count in zip((*(str(us / 1e6) for us in bounds), '+Inf'), counts):
            n += count
            lines.append(f'{name}_bucket{{{mine},le="{bound}"}} {n}\n')
        lines.append(f'{name}_count{{{mine}}} {n}\n{name}_sum{{{mine}}} {total // 1_000_000}.{total % 1_000_000:06}\n')

    def bulk(self, metric: str, text: bytes) -> None:
        if text:
            self._bulk.setdefault(metric, []).append(text)

    def texts(self) -> Dict[str, bytes]:
        """Metric -> its samples"""
        found = {metric: b''.join(parts) for metric, parts in self._bulk.items()}
        for metric, lines in self._lines.items():
            found[metric] = found.get(metric, b'') + ''.join(lines).encode('utf-8', 'replace')
        return found
