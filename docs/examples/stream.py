#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stream.py listen PATH NAME, and then stream.py dial PATH NAME: connects two programs on different
systems. Each program prints the standard input of the other program."""

import sys
import threading
import time

import stargate


def dial(path, name):
    """Retries for 10 s until a program listens."""
    end = time.monotonic() + 10
    while True:
        try:
            return stargate.Stream.dial(path, name, timeout=10)
        except stargate.Refused:
            if time.monotonic() > end:
                raise
        time.sleep(0.1)


def send(stream):
    while data := sys.stdin.buffer.read1(65536):
        stream.write(data)
    stream.shut()


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("listen", "dial"):
        sys.exit("Usage: stream.py listen|dial PATH NAME")
    what, path, name = sys.argv[1:]
    stream = stargate.Listener(path, name).accept() if what == "listen" else dial(path, name)
    with stream:
        sender = threading.Thread(target=send, args=[stream], daemon=True)
        sender.start()
        while data := stream.read():
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        sender.join()


main()
