# SPDX-License-Identifier: Apache-2.0
#
# Who gives back does not put back the flag by which somebody has just gone to sleep.
# file: kernel/core/sem/sem_wait.c
# test: sem_test
s/sg_or64(sg_sem_word(vol, sem), SG_SEMW_WAITERS);/sg_load64(sg_sem_word(vol, sem));/
