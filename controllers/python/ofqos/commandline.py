# SPDX-License-Identifier: Apache-2.0
"""What the services' command lines have in common."""
from __future__ import annotations

import argparse
from typing import Optional

from . import __version__


def parser(program: str, about: Optional[str]) -> argparse.ArgumentParser:
    """`about` is shown as it is laid out."""
    made = argparse.ArgumentParser(program, description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument('--version', action='version', version=f'%(prog)s {__version__}')
    return made


__all__ = ['parser']
