# SPDX-License-Identifier: Apache-2.0
#
# A host that boots anew knows nothing of the machines that ended with it.
# file: kernel/core/member/machine.c
# test: systems_test
/^static bool was_hosted(/,/^}/s/SG_SLOT_STATE(slot->state) == SG_SLOT_LIVE &&/false \&\& SG_SLOT_LIVE \&\&/
