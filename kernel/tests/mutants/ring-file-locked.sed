# SPDX-License-Identifier: Apache-2.0
#
# The first ring waits for a growth with the file of the objects locked.
# file: kernel/core/sem/sem_open.c
# test: ring_first_test
s/^\t\treturn NOT_ALLOWED;/\t\treturn sg_sem_ring_allow(vol) ?: -EAGAIN;/
