# SPDX-License-Identifier: Apache-2.0
#
# A joiner that finds only lapsed slots does not wait for the end of a lapse.
# file: kernel/core/member/join.c
# test: lapse_test
s/err = sg_wait_for_lapse(vol) ?: sg_slot_take(vol, id);/err = -EBUSY;/
