# SPDX-License-Identifier: Apache-2.0
#
# Missing hints are counted down, but not set.
# file: kernel/core/alloc/alloc.c
# test: space_test
/^	hints_promise(vol, from, left);$/d
