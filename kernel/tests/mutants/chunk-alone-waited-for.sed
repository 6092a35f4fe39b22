# SPDX-License-Identifier: Apache-2.0
#
# A wait for a locked chunk does not detect that another chunk has room.
# file: kernel/core/alloc/alloc.c
# test: space_test
s/else if (lock_chunk(tx, busy))/else if (!lock_chunk(tx, busy))\n\t\t\treturn false;\n\t\telse/
