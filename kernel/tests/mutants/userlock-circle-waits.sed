# SPDX-License-Identifier: Apache-2.0
#
# The search for a deadlock waits for a chain as long as another system holds its lock.
# file: kernel/core/filelock/deadlock.c
# test: userlock_paused_test
s/? SG_USERLOCK_BRIEF : SG_USERLOCK_TRY/? SG_USERLOCK_PATIENT : SG_USERLOCK_TRY/
