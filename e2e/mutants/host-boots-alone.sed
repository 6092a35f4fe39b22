# SPDX-License-Identifier: Apache-2.0
#
# A rebooted host does not detect that its machines have ended with it.
# file: kernel/core/member/machine.c
# scenario: node-reboot
# maps: walk
/^static bool was_hosted(/,/^}/s/SG_SLOT_STATE(slot->state) == SG_SLOT_LIVE &&/false \&\& SG_SLOT_LIVE \&\&/
