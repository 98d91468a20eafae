# SPDX-License-Identifier: Apache-2.0
"""The congestion control of the experiments' TCP flows.

The papers' hosts had cubic; what a machine has by default today may be another (BBR), which takes
other shares beside UDP, and other losses.  Imports nothing of ours: it runs inside Mininet, too.
"""
import subprocess

WANTED = 'cubic'
SETTINGS = '/proc/sys/net/ipv4/'


def setting(name):
    with open(SETTINGS + name) as f:
        return f.read().split()


def congestion():
    """-> cubic where this kernel has it, else what it has by default"""
    if WANTED not in setting('tcp_available_congestion_control'):
        subprocess.run(['modprobe', '-q', f'tcp_{WANTED}'], check=False)
    return WANTED if WANTED in setting('tcp_available_congestion_control') else \
        setting('tcp_congestion_control')[0]
