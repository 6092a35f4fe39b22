# SPDX-License-Identifier: Apache-2.0
#
# Who makes a semaphore makes room for it as long as there is one in the way.
# file: kernel/core/sem/sem_open.c
# test: hostile
s/if (turns == CREATE_TURNS)/if (turns == ~0u)/
