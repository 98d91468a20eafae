# SPDX-License-Identifier: Apache-2.0
"""How long the kernel lets wait whoever opens, moves or closes an interface: for a grace period of RCU, and for the
lock of rtnetlink, which all namespaces of a machine share.

    grace.py        a line for each that took longer than 0.1 s: when it began, when it ended
"""
import ctypes
import fcntl
import os
import platform
import socket
import struct
import sys
import time

MEMBARRIER = {'x86_64': 324, 'aarch64': 283, 'riscv64': 283}.get(platform.machine())
GLOBAL = 1                  # its command that waits for a grace period
SIOCGIFTXQLEN, SIOCSIFTXQLEN = 0x8942, 0x8943
STEP, WORTH = 0.05, 0.1     # seconds


def main():
    libc, sock = ctypes.CDLL(None, use_errno=True), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    length = fcntl.ioctl(sock, SIOCGIFTXQLEN, struct.pack('16si20x', b'lo', 0))
    print('watches', flush=True)
    while True:
        begun = time.monotonic()
        if MEMBARRIER and libc.syscall(MEMBARRIER, GLOBAL, 0):
            sys.exit(os.strerror(ctypes.get_errno()))
        fcntl.ioctl(sock, SIOCSIFTXQLEN, length)        # what it is already: takes the lock, changes nothing
        now = time.monotonic()
        if now - begun > WORTH:
            print(begun, now, flush=True)
        time.sleep(STEP)


if __name__ == '__main__':
    main()
