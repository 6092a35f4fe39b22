# SPDX-License-Identifier: Apache-2.0
#
# Who waits for a transaction area cannot be killed.
# file: kernel/core/tx.c
# scenario: node-hostile
# maps: walk
s/area_taken(vol, first, off, sg_lock(vol,/area_taken(vol, first, off, sg_lock_sure(vol,/
