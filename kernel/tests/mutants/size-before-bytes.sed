# SPDX-License-Identifier: Apache-2.0
#
# A size may be durable before the bytes that it covers.
# file: kernel/core/data/write.c
# test: crash_test
s,^\tsg_fence();	/\* the bytes are stored before the size.*,\t;,
