# SPDX-License-Identifier: Apache-2.0
#
# After a host's reboot, its former machines are not fenced.
# file: kernel/core/member/machine.c
# test: systems_test
/^static bool was_hosted(/,/^}/s/SG_SLOT_STATE(slot->state) == SG_SLOT_LIVE &&/false \&\& SG_SLOT_LIVE \&\&/
