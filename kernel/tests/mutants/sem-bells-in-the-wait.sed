# SPDX-License-Identifier: Apache-2.0
#
# The first sleeper makes the page of bells, without a time limit.
# file: kernel/core/sem/sem_wait.c
# test: sem_paused_test
s/^	c->waits_for = w->sem->waits;$/	sg_allocate_now(w->vol, \&(struct sg_iref){ .off = sg_sem_file().off }, SG_SEM_BELLS_PAGE);\n&/
