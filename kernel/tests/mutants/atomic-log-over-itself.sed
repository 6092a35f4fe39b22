# SPDX-License-Identifier: Apache-2.0
#
# The bytes of a forged log are the pages into which it stores.
# file: kernel/core/data/redo.c
# test: atomic_log_test
s/return from.poison \&\& run->off < off/return false \&\& run->off < off/
