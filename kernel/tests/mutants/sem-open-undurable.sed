# SPDX-License-Identifier: Apache-2.0
#
# An object is used before its open state is durable.
# file: kernel/core/sem/sem_open.c
# test: crash_sem_test
/^void sg_sem_set_durably/,/^}/ { /sg_wb(/d; /sg_fence();/d; }
