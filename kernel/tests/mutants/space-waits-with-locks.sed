# SPDX-License-Identifier: Apache-2.0
#
# A thread waits until other systems free pages, although threads here wait for locks that it holds.
# file: kernel/core/deferred/enospc.c
# test: space_wait_test
s/return again && (more || !ends_for_others(vol, nospace));/return again \&\& (more || again || !ends_for_others(vol, nospace));/
