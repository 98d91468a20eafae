#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden files as binary: one file of bytes for each, into a directory (seeds for fuzzing).

usage: tobin.py DIRECTORY [of10]     of10: those of OpenFlow 1.0
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


def read(path):
    """The bytes of a golden file: hexadecimal digits, `#` begins a comment."""
    return bytes.fromhex(" ".join(line.partition("#")[0] for line in
                                  pathlib.Path(path).read_text().splitlines()))


def files(below="."):
    """(name, bytes) of every golden file."""
    return [(p.stem, read(p)) for p in sorted((HERE / below).glob("*.hex"))]


if __name__ == "__main__":
    for name, data in files(*sys.argv[2:3]):
        (pathlib.Path(sys.argv[1]) / "-".join([*sys.argv[2:3], name])).write_bytes(data)
