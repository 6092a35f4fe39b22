# SPDX-License-Identifier: Apache-2.0
#
# The host's record for a slot's last owner counts for the present owner.
# file: kernel/core/member/machine.c
# test: systems_test
/^static bool was_hosted(/,/^}/s/slot->hosted == SG_SLOT_INC(slot->state) &&/slot->hosted \&\&/
