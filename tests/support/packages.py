# SPDX-License-Identifier: Apache-2.0
"""What is fetched once, into the build directory, where it isn't installed."""
import importlib.util
import os
import shutil
import subprocess
import sys

OSKEN = 'os-ken>=2.8,<5'


def fetched(build, name, command):
    """The directory below `build` into which command(directory) has put something.  OSError: it
    can't be fetched, and why."""
    target = os.path.join(build, name)
    if os.path.isdir(target):
        return target
    part = f'{target}.{os.getpid()}'
    done = subprocess.run(command(part), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        shutil.rmtree(part, ignore_errors=True)
        why = (done.stdout.strip().splitlines() or [f'{done.args[0]} failed'])[-1]
        raise OSError(f'{name} cannot be fetched: {why}')
    try:
        os.rename(part, target)
    except OSError:
        shutil.rmtree(part, ignore_errors=True)
        if not os.path.isdir(target):           # another test was first
            raise
    return target


def from_pypi(build, name, *requirements):
    return fetched(build, name, lambda target: [
        sys.executable, '-m', 'pip', 'install', '--quiet', '--target', target,
        '--disable-pip-version-check', '--root-user-action=ignore', *requirements])


def osken_path(build):
    """Where os-ken is, besides the usual places: nowhere when it is installed"""
    return [] if importlib.util.find_spec('os_ken') else [from_pypi(build, 'os-ken', OSKEN)]
