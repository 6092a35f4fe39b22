# SPDX-License-Identifier: Apache-2.0
#
# A claim that is lost with its reader is not counted.
# file: kernel/core/sem/sem_ring.c
# test: ring_test
s/if (cell \&\& ring_was_claimed(head, cell, i))/if (0 \&\& ring_was_claimed(head, cell, i))/
