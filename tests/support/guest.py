# SPDX-License-Identifier: Apache-2.0
"""A virtual machine as far as a switch sees it: a tap, and somebody who holds it open, as qemu does."""
import fcntl
import os
import struct
import time

from .topo import inside, sh

TUNSETIFF, TUNSETOFFLOAD, IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x400454ca, 0x400454d0, 2, 0x1000, 0x4000
CSUM, TSO4, TSO6 = 1, 2, 4


class Guest:
    """recv() and send() as of the machine behind the tap.  offloads: a virtio_net_hdr is before each frame (support/virtio.py), as
    qemu has it; CSUM, TSO4, TSO6: what the machine takes unfinished; None: no header"""

    def __init__(self, netns, name, offloads=None):
        self.netns, self.name = netns, name
        flags = IFF_TAP | IFF_NO_PI | (0 if offloads is None else IFF_VNET_HDR)
        with inside(netns):
            self.fd = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(self.fd, TUNSETIFF, struct.pack('16sH22x', name.encode(), flags))
            if offloads is not None:
                fcntl.ioctl(self.fd, TUNSETOFFLOAD, offloads)
        sh('ip', '-n', netns, 'link', 'set', name, 'up')

    def send(self, frame):
        os.write(self.fd, frame)

    def recv(self):
        """None: nothing has come."""
        try:
            return os.read(self.fd, 65536)
        except BlockingIOError:
            return None

    def close(self):
        """The tap is gone with it."""
        os.close(self.fd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def carried(send, recv, frame, offered, seconds=2.5, settled=1.0):
    """Frames at `offered` bit/s -> bit/s of those that came after `settled` seconds"""
    begin, sent, came = time.monotonic(), 0, 0
    while (now := time.monotonic() - begin) < seconds:
        while sent * len(frame) * 8 < now * offered:
            send(frame)
            sent += 1
        while (got := recv()) is not None:
            came += len(got) * (got == frame and now > settled)
        time.sleep(0.001)
    return came * 8 / (seconds - settled)
