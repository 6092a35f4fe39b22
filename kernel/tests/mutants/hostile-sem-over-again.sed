# SPDX-License-Identifier: Apache-2.0
#
# Creating a semaphore frees an old record of its name again and again, without a limit.
# file: kernel/core/sem/sem_open.c
# test: hostile
s/if (turns == CREATE_TURNS)/if (turns == ~0u)/
