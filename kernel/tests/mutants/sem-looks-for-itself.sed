# SPDX-License-Identifier: Apache-2.0
#
# An owner of one's own system is looked for, too.
# file: kernel/core/sem/sem_wait.c
# test: sem_test
s/return w->sem->type != SG_SEM_MUTEX || .*/return true;/
