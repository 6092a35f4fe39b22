# SPDX-License-Identifier: Apache-2.0
#
# The data of a removed ring stays allocated.
# file: kernel/core/sem/sem_table.c
# test: ring_test
s/err = err ?: sg_sem_ring_cut(vol, s, try);/;/
