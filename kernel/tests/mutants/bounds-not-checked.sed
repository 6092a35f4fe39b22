# SPDX-License-Identifier: Apache-2.0
#
# A file table may name memory outside the volume.
# file: kernel/core/table/table.c
# test: table_test
s/^	       x - b.low <= b.room - bytes;/	       b.low;/
