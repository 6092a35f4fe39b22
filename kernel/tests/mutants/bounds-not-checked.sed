# SPDX-License-Identifier: Apache-2.0
#
# An entry of a file table may point outside the volume.
# file: kernel/core/table/table.c
# test: table_test
s/^	       x - b.low <= b.room - bytes;/	       b.low;/
