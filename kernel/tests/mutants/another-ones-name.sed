# SPDX-License-Identifier: Apache-2.0
#
# A slot is taken for that of its last owner.
# file: kernel/core/machine.c
# test: systems_test
/^bool sg_slot_of_machine/,/^}/s/slot->named == SG_SLOT_INC(slot->state) && //
