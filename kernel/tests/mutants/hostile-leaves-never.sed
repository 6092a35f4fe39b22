# SPDX-License-Identifier: Apache-2.0
#
# Who leaves waits for ever for a lock of one who seems to live.
# file: kernel/core/lock/lock.c
# test: hostile
s/(vol->hurry ? SG_MIN(limit, HURRY_NS) : limit)/limit/
