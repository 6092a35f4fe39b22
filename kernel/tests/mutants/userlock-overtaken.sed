# SPDX-License-Identifier: Apache-2.0
#
# No request waits behind an earlier one: readers starve a writer.
# file: kernel/core/filelock/lock_table.c
# test: userlock_test
s/return flock || !queue_waits_for(c, want);/return !want \&\& (flock || !queue_waits_for(c, want));/
