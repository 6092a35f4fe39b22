# SPDX-License-Identifier: Apache-2.0
#
# The maker of the first ring holds the lock of the objects' file while it waits for a growth.
# file: kernel/core/sem/sem_open.c
# test: ring_first_test
s/^\t\treturn NOT_ALLOWED;/\t\treturn sg_sem_ring_allow(vol) ?: -EAGAIN;/
