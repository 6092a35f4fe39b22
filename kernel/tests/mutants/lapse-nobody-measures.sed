# SPDX-License-Identifier: Apache-2.0
#
# A joiner that finds only slots in their lapse does not wait for its end.
# file: kernel/core/member/join.c
# test: lapse_test
s/err = sg_wait_for_lapse(vol) ?: sg_slot_take(vol, id);/err = -EBUSY;/
