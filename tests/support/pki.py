# SPDX-License-Identifier: Apache-2.0
"""Certificates for tests of TLS, made by the openssl command, and sockets that use them."""
import base64
import os
import ssl
import subprocess


def openssl(*args):
    done = subprocess.run(['openssl', *args], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, f"openssl {' '.join(args)}:\n{done.stdout}"


class Authority:
    """A CA of a directory of its own, and what it signs."""

    def __init__(self, directory, name):
        self.directory, self.name = str(directory), name
        openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                '-keyout', self.path('ca.key'), '-out', self.path('ca.pem'), '-days', '30',
                '-subj', f'/CN={name}')
        self.ca = self.path('ca.pem')

    def path(self, name):
        return os.path.join(self.directory, f'{self.name}-{name}')

    def identity(self, name, days=30, alt='DNS:localhost,IP:127.0.0.1', subject=None, strings='utf8only'):
        """A key and a certificate; days=-1: one that has expired.  strings: the types that a name may have."""
        key, request, cert, extensions = map(self.path, (name + '.key', name + '.req',
                                                         name + '.pem', name + '.ext'))
        with open(extensions, 'w') as f:
            f.write(f'[req]\nstring_mask={strings}\ndistinguished_name=n\n[n]\n')
        openssl('req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-utf8',
                '-config', extensions, '-keyout', key, '-out', request, '-subj', subject or f'/CN={name}')
        with open(extensions, 'w') as f:
            f.write(f'subjectAltName={alt}\n')
        openssl('x509', '-req', '-in', request, '-CA', self.ca, '-CAkey', self.path('ca.key'),
                '-CAcreateserial', '-out', cert, '-days', str(days), '-extfile', extensions)
        return Identity(key, cert, self.ca)


    def altered(self, identity, old, new):
        """The same with other bytes, as many, in its certificate, which is signed again."""
        with open(identity.cert) as f:
            pem = f.read().split('-----')
        rest = halves(base64.b64decode(pem[2]))[0]
        parts = []
        while rest:
            parts.append(rest[:len(rest) - len(halves(rest)[1])])
            rest = halves(rest)[1]
        assert len(old) == len(new) and parts[0].count(old) == 1
        signed, signature, cert = (identity.cert + end for end in ('.tbs', '.sig', '.altered'))
        with open(signed, 'wb') as f:
            f.write(parts[0].replace(old, new))
        openssl('dgst', '-sha256', '-sign', self.path('ca.key'), '-out', signature, signed)
        with open(signed, 'rb') as tbs, open(signature, 'rb') as s:
            whole = tlv(0x30, tbs.read() + parts[1] + tlv(3, bytes(1) + s.read()))
        with open(cert, 'w') as f:
            f.write('-----BEGIN CERTIFICATE-----\n' + base64.encodebytes(whole).decode() +
                    '-----END CERTIFICATE-----\n')
        return Identity(identity.key, cert, identity.ca)


def tlv(tag, value):
    """DER"""
    length = len(value).to_bytes((len(value).bit_length() + 7) // 8 or 1, 'big')
    return bytes([tag]) + (length if len(value) < 128 else bytes([0x80 | len(length)]) + length) + value


def halves(data):
    """The value of the first element, and what follows it"""
    n, at = data[1], 2
    if n & 0x80:
        at += n & 0x7f
        n = int.from_bytes(data[2:at], 'big')
    return data[at:at + n], data[at + n:]


class Identity:
    def __init__(self, key, cert, ca):
        self.key, self.cert, self.ca = key, cert, ca

    def options(self):
        """For our programs"""
        return [f'--private-key={self.key}', f'--certificate={self.cert}', f'--ca-cert={self.ca}']

    def trusting(self, ca):
        return Identity(self.key, self.cert, ca)

    def context(self, server=False, version=None, show=True):
        """For Python's sockets.  version: the only one; show=False: no certificate of our own."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(self.ca)
        if show:
            context.load_cert_chain(self.cert, self.key)
        if version:
            context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
            context.maximum_version = version
            context.minimum_version = version
        if version == ssl.TLSVersion.TLSv1_1:
            context.set_ciphers('ALL:@SECLEVEL=0')
        return context
