# SPDX-License-Identifier: Apache-2.0
"""A library for LD_PRELOAD (preload.h), and the file by which a test tells it what to do."""
import mmap
import os
import subprocess


def build(source, directory, size, *flags):
    """-> the library, the file, and the file's bytes, which are all 0"""
    name = os.path.join(directory, os.path.splitext(os.path.basename(source))[0])
    subprocess.run(['cc', '-shared', '-fPIC', '-O1', '-D_GNU_SOURCE', '-fno-builtin', *flags, source,
                    '-o', name + '.so', '-ldl'], check=True)
    with open(name, 'wb') as f:
        f.write(bytes(size))
    with open(name, 'r+b') as f:
        return name + '.so', name, mmap.mmap(f.fileno(), size)
