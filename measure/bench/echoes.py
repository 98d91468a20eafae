# SPDX-License-Identifier: Apache-2.0
"""echoes.py ADDRESS SECONDS: asks for an echo every so often; a line for each: when, how long it took."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..', 'tests'))
from support import of13  # noqa: E402


def main():
    address, every = sys.argv[1:]
    conn = of13.Conn(address, timeout=600)
    conn.ok(of13.SET_ASYNC, bytes(24))
    while True:
        begun = time.monotonic()
        conn.request(of13.ECHO_REQUEST)
        print(begun, time.monotonic() - begun, flush=True)
        time.sleep(float(every))


if __name__ == '__main__':
    main()
