# SPDX-License-Identifier: Apache-2.0
#
# What is noted of the last owner's host is taken for the present one's.
# file: kernel/core/member/machine.c
# test: systems_test
/^static bool was_hosted(/,/^}/s/slot->hosted == SG_SLOT_INC(slot->state) &&/slot->hosted \&\&/
