# SPDX-License-Identifier: Apache-2.0
#
# Short runs come from empty chunks, although other chunks have room.
# file: kernel/core/alloc/alloc.c
# test: ageing_test
s/if (!is_young(tx->vol, empty))/if (!is_young(tx->vol, empty) \&\& empty >= sg_chunks(tx->vol))/
