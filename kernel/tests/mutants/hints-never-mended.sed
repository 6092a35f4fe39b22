# SPDX-License-Identifier: Apache-2.0
#
# Settling counts missing hints as done, but does not set them.
# file: kernel/core/alloc/alloc.c
# test: space_test
/^	hints_promise(vol, from, left);$/d
