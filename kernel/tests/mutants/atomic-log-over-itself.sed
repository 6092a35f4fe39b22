# SPDX-License-Identifier: Apache-2.0
#
# A forged log may have its bytes in the pages into which replay stores them.
# file: kernel/core/data/redo.c
# test: atomic_log_test
s/return from.poison \&\& run->off < off/return false \&\& run->off < off/
