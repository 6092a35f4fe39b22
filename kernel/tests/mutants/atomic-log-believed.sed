# SPDX-License-Identifier: Apache-2.0
#
# Bytes of a log outside the record are stored without a check of their checksum.
# file: kernel/core/data/redo.c
# test: atomic_log_test
s/return store || sum == crc;/return store || sum == crc || !len;/
