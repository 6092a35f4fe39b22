# SPDX-License-Identifier: Apache-2.0
#
# A slot without an identity counts as a slot of its last owner.
# file: kernel/core/member/machine.c
# test: systems_test systems_death_test
/^bool sg_slot_of_machine/,/^}/s/slot->named == SG_SLOT_INC(slot->state) && //
