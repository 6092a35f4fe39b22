# SPDX-License-Identifier: Apache-2.0
#
# A system that finds a wrong hint does not clear it.
# file: kernel/core/alloc/alloc.c
# test: space_test
s/^			sg_chunk_release(tx, chunk_lock(tx->vol, chunk));$/			sg_unlock(tx->vol, chunk_lock(tx->vol, chunk));/
