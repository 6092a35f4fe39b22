# SPDX-License-Identifier: Apache-2.0
#
# A process that waits for a transaction area cannot be killed.
# file: kernel/core/journal/tx.c
# scenario: node-hostile
# maps: walk
s/err = sg_lock_for(vol, area_lock(vol, \*k), ns);/return sg_lock_sure(vol, area_lock(vol, *k));/
