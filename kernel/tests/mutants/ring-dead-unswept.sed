# SPDX-License-Identifier: Apache-2.0
#
# Claims of a dead system are not cleared.
# file: kernel/core/sem/sem_ring.c
# test: ring_test
s/any |= ring_end_claim(vol, ring, i);/any |= !side;/
