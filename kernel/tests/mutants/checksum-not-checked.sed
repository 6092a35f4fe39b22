# SPDX-License-Identifier: Apache-2.0
#
# Replay believes a record whatever its checksum says.
# file: kernel/core/journal/tx.c
# test: crash_test
s/return sg_load64(&a->crc) == sg_area_crc(head, a->word, n) ? n : 0;/return a ? n : 0;/
