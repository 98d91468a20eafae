# SPDX-License-Identifier: Apache-2.0
"""A process that opens listening sockets in network namespaces, and does nothing else.

Entering a namespace needs CAP_SYS_ADMIN.  So a child is forked that keeps it; the service, which anybody in a pod talks to,
gives all its capabilities up."""
from __future__ import annotations

import ctypes
import json
import os
import socket
from typing import List, Tuple

CLONE_NEWNET = 0x40000000
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL = 38, 47, 4
_CAPABILITY_VERSION = 0x20080522
_MOST = 8192                    # bytes of a request or of an error
_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f'{what}: {os.strerror(number)}')


def _enter(fd: int) -> None:
    _checked(_libc.setns(fd, CLONE_NEWNET), 'entering the network namespace')


def _listen(home: int, path: str, inode: int, address: str, port: int) -> socket.socket:
    """OSError.  The inode: a path may have become another pod's, or this machine's own."""
    there = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.fstat(there).st_ino != inode or inode == os.fstat(home).st_ino:
            raise OSError(0, 'it is another namespace by now')
        _enter(there)
        try:
            return socket.create_server((address, port), backlog=64)
        finally:
            _enter(home)
    finally:
        os.close(there)


def _serve(channel: socket.socket) -> None:
    """In the child, until the parent is gone"""
    home = os.open('/proc/self/ns/net', os.O_RDONLY | os.O_CLOEXEC)
    while True:
        asked = channel.recv(_MOST)
        if not asked:
            return
        try:
            made = _listen(home, *json.loads(asked))
        except OSError as error:
            channel.send((error.strerror or str(error)).encode()[:_MOST])
            continue
        socket.send_fds(channel, [b'\0'], [made.fileno()])
        made.close()


def _drop() -> None:
    """All capabilities, for good.  OSError."""
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 'no_new_privs')
    _checked(_libc.prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL, 0, 0, 0), 'ambient capabilities')
    head, none = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    _checked(_libc.capset(head, none), 'capset')


class Opener:
    """Made before the event loop, and before threads.  OSError."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._child = os.fork()
        if not self._child:
            code = 1
            try:
                self._channel.close()
                _serve(theirs)
                code = 0
            finally:
                os._exit(code)
        theirs.close()
        _drop()

    def listen(self, path: str, inode: int, address: str, port: int) -> socket.socket:
        """A socket that listens in the namespace at `path`; takes milliseconds.  OSError."""
        self._channel.send(json.dumps([path, inode, address, port]).encode())
        got: Tuple[bytes, List[int], int, object] = socket.recv_fds(self._channel, _MOST, 1)
        if not got[1]:
            raise OSError(0, got[0].decode() or 'the process that enters namespaces has ended')
        made = socket.socket(fileno=got[1][0])
        made.setblocking(False)
        return made

    def close(self) -> None:
        self._channel.close()
        os.waitpid(self._child, 0)


__all__ = ['Opener']
