# SPDX-License-Identifier: Apache-2.0
#
# Creating a semaphore frees the old record for as long as there is one.
# file: kernel/core/sem/sem_open.c
# test: hostile
s/if (turns == CREATE_TURNS)/if (turns == ~0u)/
