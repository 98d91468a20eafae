# SPDX-License-Identifier: Apache-2.0
"""Secrets in files, and TLS, as all services of the package have them."""
from __future__ import annotations

import argparse
import os
import ssl
from typing import List, Optional, Tuple

def read_private(path: str) -> List[str]:
    """The lines of a file that nobody else may read; ValueError says what is wrong."""
    return [line.strip() for line in map(bytes.decode, private(path).splitlines()) if line.strip()]


def private(path: str) -> bytes:
    """A file that nobody else may read.  OSError; ValueError: others may."""
    with open(path, 'rb') as f:
        if os.fstat(f.fileno()).st_mode & 0o077:
            raise ValueError(f'{path}: others may read it: chmod 600')
        return f.read()


def add_tls_options(parser: argparse._ActionsContainer, prefix: str = '') -> None:
    """As ofdatapath and dpctl name them"""
    for name in ('private-key', 'certificate', 'ca-cert'):
        parser.add_argument(f'--{prefix}{name}', metavar='FILE')


def context(certificate: Optional[str], private_key: Optional[str], ca_cert: Optional[str],
            server: bool, needed: bool = False) -> Optional[ssl.SSLContext]:
    """None: without a certificate there is no TLS; who asks a server may have a CA alone.  A server asks for a
    client's certificate where there is a CA; `needed`: it lets nobody in without.  ValueError: a part is missing."""
    if bool(certificate) != bool(private_key):
        raise ValueError('a certificate and its private key are given together')
    if not certificate and (server or not ca_cert):
        if ca_cert:
            raise ValueError('a CA needs a certificate and its private key, or there would be no TLS')
        return None
    purpose = ssl.Purpose.CLIENT_AUTH if server else ssl.Purpose.SERVER_AUTH
    made = ssl.create_default_context(purpose, cafile=ca_cert)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    if certificate:
        made.load_cert_chain(certificate, private_key)
    if server and ca_cert:
        made.verify_mode = ssl.CERT_REQUIRED if needed else ssl.CERT_OPTIONAL
    return made


def switch_contexts(certificate: Optional[str], private_key: Optional[str], ca_cert: Optional[str]
                    ) -> Tuple[Optional[ssl.SSLContext], Optional[ssl.SSLContext]]:
    """To switches, and for switches that come; both sides show a certificate.  ValueError: a part is missing, which
    would let everybody in."""
    files = certificate, private_key, ca_cert
    if any(files) and not all(files):
        raise ValueError('TLS to and from switches needs a private key, a certificate and a CA: without one of them '
                         'anybody could be the switch')
    return context(*files, server=False), context(*files, server=True, needed=True)
