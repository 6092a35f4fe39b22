# SPDX-License-Identifier: Apache-2.0
#
# The next member with a dead member's number counts as the owner of the dead member's locks.
# file: kernel/core/sem/sem_member.c
# test: sem_test
s/if (!id || (u32)id != SG_SEMW_GEN(word)) {/if (!id) {/
