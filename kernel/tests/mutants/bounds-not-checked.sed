# SPDX-License-Identifier: Apache-2.0
#
# A file table may name memory outside the volume.
# file: kernel/core/table.c
# test: table_test
s/return !(x \& (bytes - 1)) \&\& x - b.low <= b.room - bytes;/return !(x \& (bytes - 1)) \&\& b.low;/
