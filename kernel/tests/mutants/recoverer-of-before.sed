# SPDX-License-Identifier: Apache-2.0
#
# A slot whose former recoverer has the same low half of the incarnation waits for the recoverer's
# successor.
# file: kernel/core/member/join.c
# test: systems_death_test
/^int sg_slot_take(/,/^}/s/sg_recover_none_yet(vol);//
