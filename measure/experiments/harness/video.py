# SPDX-License-Identifier: Apache-2.0
"""Videos: made by ffmpeg, sent as MPEG transport stream in RTP, and how what arrived looks.

    video = Video.make(directory, 'mandelbrot=size=352x288:rate=25', seconds=10, bps=800_000)
    pump([video.stream(sock, address), ...], arrived.drain)
    quality = video.quality(arrived.numbers)    PSNR of every frame, dB, against the source

A frame that did not arrive, or can't be decoded, is shown as the one before it.
"""
import contextlib
import heapq
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from collections import namedtuple

PACKET = 7 * 188                        # bytes of transport stream in a datagram
RTP = struct.Struct('!BBHII')
WIDTH, HEIGHT, FPS = 352, 288, 25
FRAME = WIDTH * HEIGHT * 3 // 2         # bytes, as yuv420p
BLACK = bytes([16]) * (WIDTH * HEIGHT) + bytes([128]) * (WIDTH * HEIGHT // 2)
RAW = ['-f', 'rawvideo', '-pix_fmt', 'yuv420p', '-s', f'{WIDTH}x{HEIGHT}', '-r', str(FPS)]
SHOWN = re.compile(rb'\] n: *\d+ pts: *(-?\d+|NOPTS)')
CLOCK = 90_000                          # of the transport stream


def ffmpeg(*words, **kw):
    done = subprocess.run(['ffmpeg', '-hide_banner', '-nostdin', '-y', *words], check=False,
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **kw)
    if done.returncode:
        raise OSError(f"ffmpeg {' '.join(words)}: {done.stderr[-500:].decode(errors='replace')}")
    return done.stderr


class Video:
    """directory: what Video.make has made there"""

    def __init__(self, directory):
        self.directory = directory
        self.source, self.sent = (os.path.join(directory, n) for n in ('source.mkv', 'sent.ts'))
        with open(os.path.join(directory, 'video.json')) as f:
            self.__dict__.update(json.load(f))          # first (time stamp), frames, seconds

    @classmethod
    def make(cls, directory, source, seconds, bps):
        """source: of ffmpeg's lavfi; bps: of the stream, its overhead included, constant.  What is
        there already is not made again."""
        if not os.path.exists(directory):
            part = tempfile.mkdtemp(dir=os.path.dirname(directory))
            encode(part, source, seconds, bps)
            video = cls(part)
            stamps = video.decode(video.sent, os.devnull)
            with open(os.path.join(part, 'video.json'), 'w') as f:
                json.dump({'first': min(stamps), 'frames': len(stamps), 'seconds': seconds}, f)
            try:
                os.rename(part, directory)
            except OSError:                     # another has made it meanwhile
                shutil.rmtree(part)
        return cls(directory)

    def packets(self):
        with open(self.sent, 'rb') as f:
            data = f.read()
        return [data[i:i + PACKET] for i in range(0, len(data), PACKET)]

    def stream(self, sock, address, start=0.0):
        """For pump(): at the stream's own rate"""
        packets = self.packets()
        rate = len(packets) / self.seconds

        def send(n):
            head = RTP.pack(0x80, 33, n & 0xffff, int(n / rate * CLOCK), 1)
            sock.sendto(head + packets[n], address)
        return Stream(start, rate, len(packets), send)

    @staticmethod
    def decode(path, out):
        """Writes the frames that can be decoded, one after the other -> their time stamps"""
        with open(out, 'wb') as f:
            said = ffmpeg('-threads', '1', '-copyts', '-i', path, '-vf',
                          f'scale={WIDTH}:{HEIGHT},showinfo', '-pix_fmt', 'yuv420p', '-fps_mode',
                          'passthrough', '-f', 'rawvideo', '-', stdout=f)
        return [int(n) if n != b'NOPTS' else -1 for n in SHOWN.findall(said)]

    def quality(self, numbers):
        """numbers: of the packets that arrived -> [PSNR of the luminance in dB] of every frame"""
        packets = self.packets()
        with tempfile.TemporaryDirectory(dir=os.path.dirname(self.directory)) as d:
            got, frames, log = (os.path.join(d, n) for n in ('got.ts', 'frames', 'log'))
            with open(got, 'wb') as f:
                f.writelines(packets[n] for n in sorted(set(numbers)))
            try:
                stamps = self.decode(got, frames)
            except OSError:                     # not even a picture's size
                stamps = []
            at = {round((s - self.first) * FPS / CLOCK): i for i, s in enumerate(stamps)}
            return self.compare(frames, at, log)

    def compare(self, frames, at, log):
        """at: {number of a frame: its place in the file `frames`}"""
        command = ['ffmpeg', '-hide_banner', '-loglevel', 'error', *RAW, '-i', '-', '-i',
                   self.source, '-lavfi', f'[0:v][1:v]psnr=stats_file={log}', '-f', 'null', '-']
        with subprocess.Popen(command, stdin=subprocess.PIPE) as child, \
                open(frames, 'rb') as decoded:
            shown = BLACK
            for n in range(self.frames):
                if n in at:
                    decoded.seek(at[n] * FRAME)
                    shown = decoded.read(FRAME) or shown
                child.stdin.write(shown)
            child.stdin.close()
        with open(log) as f:
            return [float(v) for v in re.findall(r'psnr_y:(\S+)', f.read())]


def encode(directory, source, seconds, bps):
    """The source as it is, and the stream"""
    x264 = ['-pix_fmt', 'yuv420p', '-c:v', 'libx264']
    rate = ['-b:v', str(bps * 2 // 3), '-maxrate', str(bps * 2 // 3), '-bufsize', str(bps // 3)]
    ffmpeg('-f', 'lavfi', '-i', source, '-t', str(seconds),
           *x264, '-preset', 'ultrafast', '-qp', '0', os.path.join(directory, 'source.mkv'),
           '-t', str(seconds), *x264, '-preset', 'veryfast', '-g', str(FPS), *rate, '-muxrate',
           str(bps), '-f', 'mpegts', os.path.join(directory, 'sent.ts'))
    with open(os.path.join(directory, 'video.json'), 'w') as f:
        json.dump({'seconds': seconds}, f)


class Arrived:
    """The numbers of a video's packets, in their order, that a socket has got"""

    def __init__(self, sock):
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, 33, 4 << 20)              # SO_RCVBUFFORCE
        self.sock, self.numbers = sock, []

    def drain(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.numbers.append(RTP.unpack_from(self.sock.recv(65536))[2])


# What is sent: from `start` on, `rate` a second, `count` of them, by send(number)
Stream = namedtuple('Stream', 'start rate count send')


def pump(streams, drain):
    """Sends all in the order in which it is due, by one thread: processes of their own would take
    turns on the test kernel's only processor.  drain() is called in between."""
    due = [(s.start, i, 0) for i, s in enumerate(streams)]
    heapq.heapify(due)
    begin = time.monotonic()
    while due:
        now = time.monotonic() - begin
        while due and due[0][0] <= now:
            _, i, n = heapq.heappop(due)
            streams[i].send(n)
            if n + 1 < streams[i].count:
                heapq.heappush(due, (streams[i].start + (n + 1) / streams[i].rate, i, n + 1))
        drain()
        time.sleep(0.004)
