# SPDX-License-Identifier: Apache-2.0
#
# The size may reach memory before the zeroed bytes that it covers.
# file: kernel/core/data/atomic.c
# test: crash_atomic_test
s/ \&\& !w->zeroed \&\&$/ \&\&/
