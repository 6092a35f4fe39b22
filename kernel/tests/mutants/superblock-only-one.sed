# SPDX-License-Identifier: Apache-2.0
#
# The only valid superblock is written while the other one is not valid yet.
# file: kernel/core/base/superblock.c
# test: crash_renew_test
s/^	if (!first_valid(vol)) {$/	if (!first_valid(vol) \&\& !vol) {/
