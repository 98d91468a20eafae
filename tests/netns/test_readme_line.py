# SPDX-License-Identifier: Apache-2.0
"""README.md, "On your own interfaces": its commands as they are, on two veth ports; then traffic shows that the queue holds"""
import re
import shutil
import time

import pytest

from support.typed import block, installed, received, typed

# The interfaces eth1 and eth2, a host behind each.
HOSTS = '''
set -eu
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


@pytest.mark.skipif(not shutil.which('iperf3'), reason='iperf3 is not installed (scripts/install-deps test)')
def test_the_lines_of_the_readme():
    lines = block('README.md', 'shape')
    watch = 'sudo dpctl qos-watch\n'
    assert lines.endswith(watch)
    # The live view goes on until somebody ends it, so it looks while the traffic runs, and is ended then.
    script = (installed() + HOSTS + lines.removesuffix(watch) + f'timeout 7 {watch.strip()} >/run/watch 2>&1 &\n' + PROOF +
              'wait || true\ncat /run/watch\n')
    began = time.monotonic()
    said = typed(script, 'README.md', 120)
    print(f'shaped line: {time.monotonic() - began:.0f} s')
    assert 0 < received(said) < 10, said     # a busy machine sends less, and none more
    assert re.search(r'^ +class 10 +[\d.]+M +6\.00M/10\.0M ', said.partition('cat /run/watch')[2], re.M), said
