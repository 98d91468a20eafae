# SPDX-License-Identifier: Apache-2.0
"""Programs of ours that this processor can't run by itself (a cross build)."""
import atexit
import os
import shutil
import tempfile


def program(path):
    """`path`, or a script that runs it by the emulator that meson names"""
    emulator = os.environ.get('MESON_EXE_WRAPPER')
    if not emulator:
        return path
    directory = tempfile.mkdtemp(prefix='ofqos-program-')
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    script = os.path.join(directory, os.path.basename(path))
    with open(script, 'w', encoding='ascii') as f:
        f.write(f'#!/bin/sh\nexec {emulator} "{os.path.abspath(path)}" "$@"\n')
    os.chmod(script, 0o755)
    return script
