# SPDX-License-Identifier: Apache-2.0
#
# A slot that an earlier owner was recovering, with the same low half of the incarnation, waits for
# the present owner.
# file: kernel/core/member/join.c
# test: systems_death_test
/^int sg_slot_take(/,/^}/s/sg_recover_none_yet(vol);//
