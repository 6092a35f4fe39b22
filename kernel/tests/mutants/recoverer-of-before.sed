# SPDX-License-Identifier: Apache-2.0
#
# A joiner's incarnation has the same low half as the former recoverer of a slot. The slot's
# recovery then waits for the joiner.
# file: kernel/core/member/join.c
# test: systems_death_test
/^int sg_slot_take(/,/^}/s/sg_recover_none_yet(vol);//
