#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ring.py produce FILE, ring.py consume FILE: this program works like ring.c."""

import mmap
import os
import struct
import sys

import stargate

ROOM = 65536
BLOCK = 10000


def main() -> None:
    side, path = sys.argv[1:]
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    os.posix_fallocate(fd, 0, ROOM)
    ring = mmap.mmap(fd, ROOM)
    cursor = stargate.Cursor(path, os.path.basename(path), ROOM)

    def put(block: bytes) -> None:
        while block:
            at, room = cursor.publish_at()
            piece, block = block[:room], block[room:]
            ring[at:at + len(piece)] = piece
            cursor.publish(len(piece))

    def get(count: int) -> bytes:
        block = b""
        while len(block) < count:
            at, there = cursor.consume_at()
            there = min(there, count - len(block))
            block += ring[at:at + there]
            cursor.consume(there)
        return block

    if side == "produce":
        while block := sys.stdin.buffer.read(BLOCK):
            put(struct.pack("<I", len(block)) + block)
        put(struct.pack("<I", 0))
    else:
        while count := struct.unpack("<I", get(4))[0]:
            sys.stdout.buffer.write(get(count))


main()
