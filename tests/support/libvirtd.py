# SPDX-License-Identifier: Apache-2.0
"""A real libvirtd in a node's network namespace, with files of its own, and ofqos-libvirt as its hook (docs/how-to/cloud.md).  Its machines are
qemu's without a system: paused, so that they cost nothing."""
import os
import re
import shutil
import subprocess
import sys

from .served import PACKAGE
from .topo import REPOSITORY, binary
from .wait import until

PROGRAMS = ('libvirtd', 'virsh', 'qemu-system-x86_64')
PLACES = {'etc': '/etc/libvirt', 'run': '/run/libvirt', 'lib': '/var/lib/libvirt', 'cache': '/var/cache/libvirt', 'log': '/var/log/libvirt'}
# No security driver, control groups or namespaces of its own: the test's are enough.
QEMU = '''user = "root"
group = "root"
security_driver = "none"
stdio_handler = "file"
cgroup_controllers = []
namespaces = []
remember_owner = 0
'''
DAEMON = '''unix_sock_dir = "{0}/sock"
auth_unix_rw = "none"
auth_unix_ro = "none"
log_outputs = "3:stderr"
'''
HOOK = '''#!/bin/sh
echo "$2" >> {directory}/operations
export PYTHONPATH={package} OFQOS_DPCTL={dpctl}
exec {python} -m ofqos.libvirt {words}
'''


def missing():
    """Why there is none: its programs; or nothing"""
    without = [name for name in PROGRAMS if not shutil.which(name)]
    return f'{", ".join(without)} is not installed (Debian: libvirt-daemon, libvirt-daemon-driver-qemu, libvirt-clients, qemu-system-x86)' if without else ''


def pages_words(switch):
    """Of the page's script, with this switch"""
    with open(os.path.join(REPOSITORY, 'docs/how-to/cloud.md'), encoding='utf-8') as f:
        return re.search(r'^exec ofqos-libvirt (.*)$', f.read(), re.M)[1].replace('br0', switch.address)


class Libvirtd:
    """directory: of all its files.  start() and stop() as systemd does it; its machines go on meanwhile."""

    def __init__(self, switch, directory):
        self.switch, self.directory, self.process = switch, str(directory), None
        for name in (*PLACES, 'sock', 'etc/hooks/qemu.d'):
            os.makedirs(f'{self.directory}/{name}', exist_ok=True)
        self.write('etc/qemu.conf', QEMU)
        self.write('etc/libvirtd.conf', DAEMON.format(self.directory))
        self.write('operations', '')
        for name, line in ('passwd', 'libvirt-qemu:x:64055:64055::/:/usr/sbin/nologin'), ('group', 'libvirt-qemu:x:64055:'):
            with open(f'/etc/{name}', encoding='utf-8') as f:      # it asks for this one, whatever qemu.conf says
                self.write(f'etc/{name}', f'{f.read()}{line}\n')
        hook = self.write('etc/hooks/qemu.d/ofqos', HOOK.format(directory=self.directory, package=PACKAGE, dpctl=binary('utils/dpctl/dpctl'), python=sys.executable,
                                                                words=pages_words(switch)))
        os.chmod(hook, 0o755)

    def write(self, name, text):
        with open(f'{self.directory}/{name}', 'w', encoding='utf-8') as f:
            f.write(text)
        return f.name

    def start(self):
        binds = [(f'{self.directory}/{name}', place) for name, place in PLACES.items()]
        binds += [(f'{self.directory}/etc/{name}', f'/etc/{name}') for name in ('passwd', 'group')]
        script = ''.join(f'mkdir -p {there}\n' for _, there in binds[:len(PLACES)])
        script = 'mount -t tmpfs none /run\n' + script + ''.join(f'mount --bind {here} {there}\n' for here, there in binds)
        with open(f'{self.directory}/said', 'a', encoding='utf-8') as said:
            self.process = subprocess.Popen(['ip', 'netns', 'exec', self.switch.topo.switch_ns, 'unshare', '--mount', 'sh', '-ec',
                                             f'{script}exec libvirtd -f /etc/libvirt/libvirtd.conf -p /run/libvirtd.pid'],
                                            stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=self.directory)
        until(lambda: self.process.poll() is not None or not self.virsh('version', check=False).returncode, 'libvirtd to answer', seconds=240)
        assert self.process.poll() is None, self.said()

    def stop(self):
        self.process.terminate()
        assert self.process.wait(60) == 0, self.said()

    def said(self):
        with open(f'{self.directory}/said', encoding='utf-8') as f:
            return f.read()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.virsh('destroy', 'red', check=False)
            self.stop()

    def virsh(self, *words, check=True):
        done = subprocess.run(['virsh', '--quiet', *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300, check=False,
                              env={**os.environ, 'LIBVIRT_DEFAULT_URI': f'qemu+unix:///system?socket={self.directory}/sock/libvirt-sock'})
        assert not check or done.returncode == 0, f'virsh {" ".join(words)}: {done.stderr}\n{self.said()}'
        return done

    def operations(self):
        """That the hook was run for since the last look"""
        with open(f'{self.directory}/operations', 'r+', encoding='utf-8') as f:
            found = f.read().split()
            f.truncate(0)
        return found

    def create(self, *interfaces, check=True):
        """A machine `red`"""
        path = self.write('red.xml', f"""<domain type='qemu'><name>red</name><memory unit='MiB'>32</memory><vcpu>1</vcpu><features><acpi/></features>
            <os><type arch='x86_64' machine='pc'>hvm</type></os><devices><emulator>{shutil.which('qemu-system-x86_64')}</emulator>
            <memballoon model='none'/>{''.join(interfaces)}</devices></domain>""")
        return self.virsh('create', '--paused', path, check=check)
