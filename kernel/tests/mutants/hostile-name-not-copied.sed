# SPDX-License-Identifier: Apache-2.0
#
# The name of a semaphore is shown from where others can store.
# file: kernel/core/sem/sem_list.c
# test: hostile
s/if (l->emit(l->ctx, name, (u32)len, &st))/if (l->emit(l->ctx, sg_at(vol, SG_SEM_FIELD(s, name)), (u32)len, \&st))/
