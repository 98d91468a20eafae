# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' own API server with etcd, on loopback (tests/kubernetes/fetch builds it), and kubectl as its administrator.  There is no other part
of a cluster: no controller, no scheduler, no kubelet."""
import json
import os
import secrets
import shutil
import socket
import subprocess

from .wait import until

STORE = os.environ.get('OFQOS_KUBERNETES_DIR', '/var/cache/ofqos-kubernetes')


def _program(name):
    return next((path for path in (f'{STORE}/{name}', shutil.which(name)) if path and os.access(path, os.X_OK)), '')


SERVER, KUBECTL = _program('kube-apiserver'), _program('kubectl')       # Debian's kubectl is too old


def missing():
    """Why there is none: its programs; or nothing"""
    if not SERVER or not KUBECTL:
        return 'kube-apiserver or kubectl is not there (tests/kubernetes/fetch)'
    without = [name for name in ('etcd', 'openssl') if not shutil.which(name)]
    return f'{", ".join(without)} is not installed (Debian: etcd-server, openssl)' if without else ''


def free_ports(n):
    sockets = [socket.create_server(('127.0.0.1', 0)) for _ in range(n)]
    found = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return found


class Refused(Exception):
    """What kubectl says of the server's refusal"""


class Kubernetes:
    """url; ca: a file"""

    def __init__(self, directory):
        self.directory, self.token, self.etcd, self.server = str(directory), secrets.token_hex(16), None, None
        self.store_port, self.peer_port, self.port = free_ports(3)
        self.url, self.ca = f'https://127.0.0.1:{self.port}', f'{self.directory}/certificates/apiserver.crt'
        subprocess.run(['openssl', 'genrsa', '-out', f'{self.directory}/account.key', '2048'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        with open(f'{self.directory}/tokens', 'w', encoding='ascii') as f:
            f.write(f'{self.token},administrator,1,system:masters\n')

    def _run(self, *words):
        with open(f'{self.directory}/said', 'a', encoding='utf-8') as said:
            return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=self.directory)

    def start(self):
        self.server = self._run(
            SERVER, '--etcd-servers', f'http://127.0.0.1:{self.store_port}', '--bind-address=127.0.0.1', '--secure-port', str(self.port),
            '--cert-dir', f'{self.directory}/certificates', '--token-auth-file', f'{self.directory}/tokens', '--authorization-mode=RBAC', '--service-cluster-ip-range=10.96.0.0/16',
            '--service-account-issuer=https://kubernetes.default.svc', '--service-account-key-file', f'{self.directory}/account.key',
            '--service-account-signing-key-file', f'{self.directory}/account.key', '--v=1')

        def ready():
            assert self.server.poll() is None, self.said()
            return os.path.exists(self.ca) and not self._kubectl('get', '--raw=/readyz').returncode
        until(ready, 'the API server', seconds=240)

    def kill(self):
        self.server.kill()
        self.server.wait()

    def said(self):
        with open(f'{self.directory}/said', encoding='utf-8') as f:
            return f.read()[-4000:]

    def __enter__(self):
        urls = [f'http://127.0.0.1:{port}' for port in (self.store_port, self.peer_port)]
        self.etcd = self._run('etcd', '--data-dir', f'{self.directory}/etcd', '--listen-client-urls', urls[0], '--advertise-client-urls', urls[0], '--listen-peer-urls', urls[1],
                              '--initial-advertise-peer-urls', urls[1], '--initial-cluster', f'default={urls[1]}', '--unsafe-no-fsync')
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.server, self.etcd:
            if process and process.poll() is None:
                process.kill()
                process.wait()

    def _kubectl(self, *words, text=None):
        how = {'input': text} if text is not None else {'stdin': subprocess.DEVNULL}
        return subprocess.run([KUBECTL, '--server', self.url, '--certificate-authority', self.ca, '--token', self.token, *words], text=True, timeout=120, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, 'HOME': self.directory, 'KUBECONFIG': '/dev/null'}, **how)

    def kubectl(self, *words, text=None):
        """-> what it prints.  Refused"""
        done = self._kubectl(*words, text=text)
        if done.returncode:
            raise Refused(done.stderr)
        return done.stdout

    def apply(self, *objects):
        return self.kubectl('apply', '--server-side', '--validate=strict', '--force-conflicts', '--filename=-',
                            text=json.dumps({'apiVersion': 'v1', 'kind': 'List', 'items': list(objects)}))

    def get(self, *words):
        return json.loads(self.kubectl('get', '--output=json', *words))
