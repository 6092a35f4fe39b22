# SPDX-License-Identifier: Apache-2.0
#
# The name of a semaphore is printed from memory into which other systems can store.
# file: kernel/core/sem/sem_list.c
# test: hostile
s/if (l->emit(l->ctx, name, (u32)len, &st))/if (l->emit(l->ctx, sg_at(vol, SG_SEM_FIELD(s, name)), (u32)len, \&st))/
