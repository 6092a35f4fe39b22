# SPDX-License-Identifier: Apache-2.0
#
# A writer overwrites what a slow reader still has, as long as the head has passed it.
# file: kernel/core/uapi/ringword.h
# test: ring_test
s/if (cell \&\& SG_RING_CELL_POS(cell) < low/if (0 \&\& SG_RING_CELL_POS(cell) < low/
