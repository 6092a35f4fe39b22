# SPDX-License-Identifier: Apache-2.0
#
# After the head has passed a record, a writer overwrites it although a slow reader still has it.
# file: kernel/core/uapi/ringword.h
# test: ring_test
s/if (cell \&\& SG_RING_CELL_POS(cell) < low/if (0 \&\& SG_RING_CELL_POS(cell) < low/
