# SPDX-License-Identifier: Apache-2.0
#
# A release does not restore the flag of a thread that has just gone to sleep.
# file: kernel/core/sem/sem_wait.c
# test: sem_test
s/sg_or64(sg_sem_word(vol, sem), SG_SEMW_WAITERS);/sg_load64(sg_sem_word(vol, sem));/
