# SPDX-License-Identifier: Apache-2.0
#
# A claim at position 0 counts as no claim.
# file: kernel/core/uapi/ringword.h
# test: ring_test
s/if (cell \&\& SG_RING_CELL_POS(cell) < low/if (SG_RING_CELL_POS(cell) \&\& SG_RING_CELL_POS(cell) < low/
