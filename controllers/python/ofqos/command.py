# SPDX-License-Identifier: Apache-2.0
"""ofqos: one command for all of the package.

    ofqos daemon --check /etc/ofqos/ofqosd.yaml
    ofqos queue list edge 2
"""
from __future__ import annotations

import difflib
import importlib
import sys
from typing import Dict, NamedTuple, Optional, Sequence

from . import __version__


class Part(NamedTuple):
    module: str             # that has main(words)
    about: str


PARTS: Dict[str, Part] = {
    'daemon': Part('daemon.cli', 'ofqosd: all services in one process'),
    'queue': Part('client', 'queues of its switches: list, add, change'),
    'switches': Part('joining', 'which switches may join: list, approve, forget'),
    'users': Part('userfile', 'who may do what: add one, is the file right?'),
    'log': Part('journal', 'who changed what'),
    'network': Part('network.cli', 'one policy for many switches: check, plan, apply, diff, rollback'),
    'reserve': Part('reserve.cli', 'rates along whole paths: add, list, move'),
    'web': Part('web.cli', 'the pages alone'),
    'metrics': Part('exporter.cli', 'the metrics alone, for Prometheus; --once prints them'),
    'shaper': Part('shaper.cli', "an ISP's customers as queues and flows of one switch: check, plan, apply, show"),
    'tenant': Part('tenant.command', "the tenants' own door, and its client"),
    'ovsdb': Part('ovsdb.cli', 'queues for programs that speak OVSDB'),
    'docker': Part('docker', "Docker's network driver: its containers as ports"),
    'libvirt': Part('libvirt', "libvirt's hook: its machines' interfaces as ports"),
    'gauge': Part('gauge.cli', "Faucet's Gauge, with queues"),
}


def usage() -> str:
    return 'usage: ofqos COMMAND [WORD...]     (each has --help)\n\n' + \
        ''.join(f'    {name:<10}{part.about}\n' for name, part in PARTS.items())


def main(argv: Optional[Sequence[str]] = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ['--version']:
        print(f'ofqos {__version__}')
        return 0
    if not words or words[0] in ('-h', '--help', 'help'):
        print(usage(), end='')
        return 0 if words else 2
    part = PARTS.get(words[0])
    if part is None:
        near = difflib.get_close_matches(words[0], PARTS, 1)
        print(f'ofqos: there is no command {words[0]!r}' + (f': did you mean {near[0]}?' if near else f'; there are: {", ".join(PARTS)}'),
              file=sys.stderr)
        return 2
    main_of = importlib.import_module(f'ofqos.{part.module}').main
    return int(main_of(words[1:]) or 0)


if __name__ == '__main__':
    sys.exit(main())
