# SPDX-License-Identifier: Apache-2.0
#
# The record of an atomic write may reach memory before the fresh pages that it publishes.
# file: kernel/core/data/atomic.c
# test: crash_atomic_test
s/^\t\ttx->only_record = !w->fills \&\& !w->replacing \&\& !w->zeroed \&\&$/\t\ttx->only_record =/
