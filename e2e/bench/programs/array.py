# SPDX-License-Identifier: Apache-2.0
"""array.py FILE: reads and writes random rows of an array in a mapped file, like a data loader."""

import mmap
import random
import sys

SIZE = 16 << 20
ROW = 64

with open(sys.argv[1], "wb") as f:
    block = bytes(range(256)) * 4096
    for _ in range(SIZE // len(block)):
        f.write(block)
with open(sys.argv[1], "r+b") as f, mmap.mmap(f.fileno(), SIZE) as m:
    rows = memoryview(m).cast("Q")
    random.seed(7)
    total = 0
    for _ in range(3000):
        at = random.randrange(len(rows) // ROW) * ROW
        total += sum(rows[at:at + ROW])
        rows[at] = total & 0xffffffff
    print(total)
    rows.release()
