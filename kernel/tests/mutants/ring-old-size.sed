# SPDX-License-Identifier: Apache-2.0
#
# The first ring is made with the size that this system knew before it waited.
# file: kernel/core/sem/sem_ring.c
# test: ring_first_test
/^\tvol->up->follow(vol);$/d
