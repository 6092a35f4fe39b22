# SPDX-License-Identifier: Apache-2.0
#
# Reclaim waits for a chunk as long as another system holds the chunk's lock.
# file: kernel/core/deferred/reclaim.c
# test: reclaim_busy_test
/^static bool reclaim_await/,/^}/s/sg_lock_brief(vol, lock)/sg_lock(vol, lock)/
