# SPDX-License-Identifier: Apache-2.0
#
# The next one with a dead member's number is taken for the owner of what that one left.
# file: kernel/core/sem/sem_member.c
# test: sem_test
s/if (!id || (u32)id != SG_SEMW_GEN(word)) {/if (!id) {/
