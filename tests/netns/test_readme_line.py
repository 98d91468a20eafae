# SPDX-License-Identifier: Apache-2.0
"""README.md, "On your own interfaces": its commands as they are, on two veth ports; then traffic shows that the queue holds"""
import os
import re
import shutil
import subprocess
import time

import pytest

from support.topo import REPOSITORY, build_directory

# A machine with the interfaces eth1 and eth2, a host behind each, and sudo, which a root of the tests may lack.
PRELUDE = '''
mount --bind "$BUILD" /mnt && mount -t tmpfs tmpfs /run && mkdir -p /run/netns /run/bin || exit 3
printf '#!/bin/sh\\nexec "$@"\\n' >/run/bin/sudo && chmod +x /run/bin/sudo || exit 3
export PATH=/run/bin:/mnt/datapath:/mnt/utils/dpctl:$PATH
set -eu
ip link set lo up
for n in 1 2; do
    ip netns add h$n
    ip link add eth0 netns h$n type veth peer name eth$n
    ip -n h$n address add 10.0.0.$n/24 dev eth0
    ip -n h$n link set eth0 up
    ip link set eth$n up
done
set -x
'''
PROOF = '''
ip netns exec h2 iperf3 --server --one-off --daemon
ip netns exec h1 iperf3 --client 10.0.0.2 --time 4 --bitrate 50M
sudo dpctl stats-queue
'''


def commands():
    return subprocess.run([os.path.join(REPOSITORY, 'scripts/doc-commands'), os.path.join(REPOSITORY, 'README.md'), 'shape'],
                          stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.mark.skipif(not shutil.which('iperf3'), reason='iperf3 is not installed (scripts/install-deps test)')
def test_the_lines_of_the_readme():
    lines = commands()
    watch = 'sudo dpctl qos-watch\n'
    assert lines.endswith(watch)
    # The live view goes on until somebody ends it, so it looks while the traffic runs, and is ended then.
    script = (PRELUDE + lines.removesuffix(watch) + f'timeout 7 {watch.strip()} >/run/watch 2>&1 &\n' + PROOF +
              'wait || true\ncat /run/watch\n')
    began = time.monotonic()
    done = subprocess.run(['unshare', '--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', 'bash', '-c', script],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
                          check=False, env={**os.environ, 'BUILD': os.path.abspath(build_directory())})
    print(f'shaped line: {time.monotonic() - began:.0f} s')
    assert done.returncode == 0, done.stdout
    received, unit = re.search(r'([\d.]+) ([KM])bits/sec +receiver', done.stdout).groups()
    assert 0 < float(received) / {'K': 1000, 'M': 1}[unit] < 10, done.stdout     # a busy machine sends less, and none more
    assert re.search(r'^ +class 10 +[\d.]+M +6\.00M/10\.0M ', done.stdout.partition('cat /run/watch')[2], re.M), done.stdout
