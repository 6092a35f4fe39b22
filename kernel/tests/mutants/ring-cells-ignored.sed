# SPDX-License-Identifier: Apache-2.0
#
# A writer overwrites a record that a slow reader still has, once the head has passed it.
# file: kernel/core/uapi/ringword.h
# test: ring_test
s/if (cell \&\& SG_RING_CELL_POS(cell) < low/if (0 \&\& SG_RING_CELL_POS(cell) < low/
