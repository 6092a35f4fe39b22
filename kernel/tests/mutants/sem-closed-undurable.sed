# SPDX-License-Identifier: Apache-2.0
#
# The last user closes an object before its state is durable.
# file: kernel/core/sem/sem_open.c
# test: crash_sem_test
/^static void put_away/,/^}/ { /^\tsg_wb(/d; /^\tsg_fence();/d; }
