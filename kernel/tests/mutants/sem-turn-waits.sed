# SPDX-License-Identifier: Apache-2.0
#
# A system that does not come when it is its turn is waited for, however long.
# file: kernel/core/sem/sem_wait.c
# test: sem_many_test
s/if (now - w->free_since < PATIENCE_NS)/if (now >= w->free_since)/
