# SPDX-License-Identifier: Apache-2.0
#
# A transaction waits for a single area, whose holder may be paused.
# file: kernel/core/journal/tx.c
# test: systems_area_test
s/err = sg_lock_for(vol, area_lock(vol, \*k), ns);/err = sg_lock(vol, area_lock(vol, *k));/
