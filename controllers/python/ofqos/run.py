# SPDX-License-Identifier: Apache-2.0
"""Runs applications in os-ken or Ryu, whichever there is: newer os-ken has no launcher of its own.

    python3 -m ofqos.run [--ofp-tcp-listen-port=6653 ...] APPLICATION...

APPLICATION is a module's name; options with two dashes are the framework's (with "=").
"""
from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import List


def main(words: List[str]) -> None:
    apps = [word for word in words if not word.startswith('-')]
    if not apps:
        sys.exit(__doc__)
    name = 'os_ken' if importlib.util.find_spec('os_ken') else 'ryu'
    # Before anything else is loaded.  os-ken's own threads are real ones.
    importlib.import_module(f'{name}.lib.hub').patch(thread=name == 'ryu')
    if 'eventlet' in sys.modules:   # their web server wants this of it, which has it no more
        wsgi = importlib.import_module('eventlet.wsgi')
        setattr(wsgi, 'ALREADY_HANDLED', getattr(wsgi, 'ALREADY_HANDLED', b''))
    conf = importlib.import_module(f'{name}.cfg').CONF
    log = importlib.import_module(f'{name}.log')
    importlib.import_module(f'{name}.flags')
    manager = importlib.import_module(f'{name}.base.app_manager').AppManager
    importlib.import_module(f'{name}.topology.switches')     # for its option --observe-links
    conf([word for word in words if word.startswith('-')], project=name)
    log.init_log()
    manager.run_apps(apps)


if __name__ == '__main__':
    main(sys.argv[1:])
