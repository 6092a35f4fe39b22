# SPDX-License-Identifier: Apache-2.0
#
# Short runs fill chunks that a part of 2 MiB of another file has begun.
# file: kernel/core/alloc/alloc.c
# test: ageing_test
s/	if (is_for_leaf(tx->vol, chunk))/	if (is_for_leaf(tx->vol, chunk) \&\& !need)/
s/ && !is_for_leaf(tx->vol, from) &&/ \&\&/
