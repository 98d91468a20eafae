#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a virtual machine of test_vm.py runs: obeys its host, which it connects to at port 7000 of 10.0.0.1, a line of JSON each."""
import json
import os
import socket
import subprocess
import threading
import time

HOST, OWN, MAC = '10.0.0.1', '10.0.0.7', '52:54:00:00:00:07'


def sh(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def longest_while(card, work, way):
    """-> the longest frame that the card has taken or given meanwhile; way: PACKET_HOST or PACKET_OUTGOING"""
    longest, over = [0], threading.Event()
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as sock:
        sock.bind((card, 0))
        sock.settimeout(0.2)

        def look():
            while not over.is_set():
                try:
                    frame, address = sock.recvfrom(1 << 17)
                except socket.timeout:
                    continue
                if address[2] == way:
                    longest[0] = max(longest[0], len(frame))
        thread = threading.Thread(target=look)
        thread.start()
        work()
        over.set()
        thread.join()
    return longest[0]


def take():
    """All that the host sends over a connection"""
    with socket.create_connection((HOST, 7001), timeout=300) as sock:
        while sock.recv(1 << 16):
            pass


def give():
    with socket.create_connection((HOST, 7002), timeout=300) as sock:
        sock.sendall(bytes(4 << 20))


def count(seconds):
    """Mbit/s of UDP payload that come in, after a while"""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((OWN, 5001))
        sock.settimeout(0.2)
        begin, got = time.monotonic() + 2, 0
        while time.monotonic() < begin + seconds:
            try:
                n = len(sock.recv(2048))
            except socket.timeout:
                continue
            got += n if time.monotonic() >= begin else 0
        return got * 8 / seconds / 1e6


def main():
    card, = [name for name in os.listdir('/sys/class/net') if open(f'/sys/class/net/{name}/address', encoding='ascii').read().strip() == MAC]
    sh('ip', 'address', 'add', f'{OWN}/24', 'dev', card)
    sh('ip', 'link', 'set', card, 'up')
    for _ in range(100):
        try:
            control = socket.create_connection((HOST, 7000), timeout=600)
            break
        except OSError:
            time.sleep(0.2)
    with control, control.makefile('rw') as lines:
        does = {'take': lambda: longest_while(card, take, 0), 'give': lambda: longest_while(card, give, 4),
                'count': lambda: count(6), 'driver': lambda: os.path.basename(os.readlink(f'/sys/class/net/{card}/device/driver'))}
        for line in lines:
            lines.write(json.dumps(does[line.strip()]()) + '\n')
            lines.flush()


main()
