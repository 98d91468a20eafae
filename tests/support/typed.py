# SPDX-License-Identifier: Apache-2.0
"""What a page tells people to type, typed on a machine of its own: its network, mounts, /run and processes end with it."""
import os
import re
import shlex
import subprocess

from support.topo import REPOSITORY, build_directory

# What each such machine has: a loopback, names of network namespaces, and sudo, which a root of the tests may lack.
MACHINE = '''
mount -t tmpfs tmpfs /run && mkdir -p /run/netns /run/lock /run/bin && ip link set lo up || exit 3
printf '#!/bin/sh\\nexec "$@"\\n' >/run/bin/sudo && chmod +x /run/bin/sudo || exit 3
command -v sudo >/dev/null || export PATH=$PATH:/run/bin
'''


def installed():
    """Our programs, as if they were installed: sudo finds them, too"""
    return f'''
mount --bind {shlex.quote(os.path.abspath(build_directory()))} /mnt || exit 3
export PATH=/run/bin:/mnt/datapath:/mnt/utils/dpctl:$PATH
'''


def block(page, name):
    """The commands behind `<!-- run: NAME -->`"""
    return subprocess.run([os.path.join(REPOSITORY, 'scripts/doc-commands'), os.path.join(REPOSITORY, page), name],
                          stdout=subprocess.PIPE, text=True, check=True).stdout


def typed(script, what='', seconds=300, **more):
    """-> all that was said; a command that fails fails the test"""
    done = subprocess.run(['unshare', '--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', 'bash', '-c', MACHINE + script],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds,
                          check=False, **more)
    assert done.returncode == 0, f'{what}:\n{done.stdout[-6000:]}'
    return done.stdout


def received(said):
    """Mbit/s, as iperf3's client ends"""
    figure, unit = re.search(r'([\d.]+) ([KM])bits/sec +receiver', said).groups()
    return float(figure) / {'K': 1000, 'M': 1}[unit]
