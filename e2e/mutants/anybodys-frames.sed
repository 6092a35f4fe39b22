# SPDX-License-Identifier: Apache-2.0
#
# A file table may name memory outside of its volume.
# file: kernel/core/table/table.c
# scenario: tenants
# maps: walk
s/^	       x - b.low <= b.room - bytes;/	       (b.low || b.room);/
