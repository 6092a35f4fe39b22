# SPDX-License-Identifier: Apache-2.0
#
# Others wait for a system that does not take its turn, without limit.
# file: kernel/core/sem/sem_wait.c
# test: sem_many_test
s/if (now - w->free_since < PATIENCE_NS)/if (now >= w->free_since)/
