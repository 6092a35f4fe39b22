# SPDX-License-Identifier: Apache-2.0
#
# What an earlier owner of a slot recovered, whose incarnation had the same low half, waits for the present one.
# file: kernel/core/member/join.c
# test: systems_death_test
/^int sg_slot_take(/,/^}/s/sg_recover_none_yet(vol);//
