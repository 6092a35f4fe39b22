# SPDX-License-Identifier: Apache-2.0
#
# After a power cut, the new chunks may be unformatted.
# file: kernel/core/member/volume_grow.c
# test: crash_grow_test
s/^\tsg_wb(word, len);/\t;/
