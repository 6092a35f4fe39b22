# SPDX-License-Identifier: Apache-2.0
#
# A leaving system waits forever for a lock of a system that seems live.
# file: kernel/core/lock/lock.c
# test: hostile
s/(vol->hurry ? SG_MIN(limit, HURRY_NS) : limit)/limit/
