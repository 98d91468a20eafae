# SPDX-License-Identifier: Apache-2.0
"""os-ken or Ryu, whichever there is: the one that is loaded already, else the first that can be.

The two have the same modules and classes, but for the name of an application's base class.
"""
from __future__ import annotations

import importlib
import sys
from typing import Any

_APPS = {'os_ken': 'OSKenApp', 'ryu': 'RyuApp'}


def _find() -> str:
    for name in sorted(_APPS, key=lambda name: name not in sys.modules):
        try:
            importlib.import_module(f'{name}.base.app_manager')
            return name
        except ImportError:
            continue
    raise ImportError('neither os-ken nor Ryu is installed: pip install os-ken')


NAME = _find()


def _module(path: str) -> Any:
    return importlib.import_module(f'{NAME}.{path}')


app_manager = _module('base.app_manager')
ofp_event = _module('controller.ofp_event')
handler = _module('controller.handler')
hub = _module('lib.hub')
packet = _module('lib.packet.packet')
ethernet = _module('lib.packet.ethernet')
ofproto_v1_3 = _module('ofproto.ofproto_v1_3')
MsgBase = _module('ofproto.ofproto_parser').MsgBase
App = getattr(app_manager, _APPS[NAME])
