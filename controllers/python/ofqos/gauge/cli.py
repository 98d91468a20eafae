# SPDX-License-Identifier: Apache-2.0
"""ofqos-gauge: Faucet's Gauge, with the same options and settings, and watchers for queues.

    GAUGE_CONFIG=gauge.yaml GAUGE_LOG=STDOUT GAUGE_EXCEPTION_LOG=STDOUT ofqos-gauge --ryu-ofp-tcp-listen-port=6654
"""
from __future__ import annotations

import importlib
import os
import sys
from typing import Optional, Sequence


def main(argv: Optional[Sequence[str]] = None) -> None:
    try:
        launcher = importlib.import_module('faucet.__main__')
    except ImportError:
        sys.exit("ofqos-gauge: Faucet is not installed here: pip install 'faucet>=1.10,<2'")
    words = launcher.build_ryu_args(['gauge', *(sys.argv[1:] if argv is None else argv)])       # osken-manager OPTION... faucet.gauge
    if words:
        ours = ['ofqos.gauge.app' if word == 'faucet.gauge' else word for word in words[1:]]
        os.execv(sys.executable, [sys.executable, '-m', 'os_ken.cmd.manager', *ours])


if __name__ == '__main__':
    main()
