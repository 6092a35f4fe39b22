# SPDX-License-Identifier: Apache-2.0
#
# A ring is made although a system with older software has the volume open.
# file: kernel/core/sem/sem_ring.c
# test: ring_test
s/	if (ring_all_know(vol))/	if (ring_all_know(vol) || 1)/; s/if (!err \&\& !ring_all_know(vol))/if (err > 0)/
