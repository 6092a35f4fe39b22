# SPDX-License-Identifier: Apache-2.0
#
# The note on the host of a slot's last owner is taken for the present owner's.
# file: kernel/core/member/machine.c
# test: systems_test
/^static bool was_hosted(/,/^}/s/slot->hosted == SG_SLOT_INC(slot->state) &&/slot->hosted \&\&/
