# SPDX-License-Identifier: Apache-2.0
#
# The last user of an object waits for a transaction area while it holds the lock of the objects'
# file.
# file: kernel/core/sem/sem_open.c
# test: sem_close_test
s/sg_sem_destroy_try(vol, &s);/sg_sem_destroy(vol, \&s);/
