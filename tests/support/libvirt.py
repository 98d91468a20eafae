# SPDX-License-Identifier: Apache-2.0
"""Domains as libvirt describes them, and its hook as it runs it."""
import os
import subprocess
import sys

from .served import PACKAGE
from .topo import binary

BANDWIDTH = "<bandwidth><inbound average='500' peak='1000' burst='16'/><outbound average='250'/></bandwidth>"


def interface(name, kind='ethernet', source='', bandwidth=BANDWIDTH):
    return f"<interface type='{kind}'><mac address='02:00:00:00:00:07'/>{source}<target dev='{name}'/>{bandwidth}<model type='virtio'/></interface>"


def domain(*interfaces):
    return f"<domain type='kvm' id='1'><name>red</name><devices><disk type='file'/>{''.join(interfaces)}</devices></domain>"


def hook(switch, operation, xml, *options, address=None, more=('begin', '-'), dpctl=None):
    """As libvirt runs it -> what it ended with, and what it said"""
    done = subprocess.run(['ip', 'netns', 'exec', switch.topo.switch_ns, sys.executable, '-m', 'ofqos.libvirt', '--switch', address or switch.address,
                           *options, '--', 'red', operation, *more], input=xml.encode() if isinstance(xml, str) else xml, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False,
                          env={**os.environ, 'PYTHONPATH': PACKAGE, 'OFQOS_DPCTL': dpctl or binary('utils/dpctl/dpctl')})
    assert done.stdout == b'' and b'Traceback' not in done.stderr, done.stderr.decode()
    return done.returncode, done.stderr.decode()
