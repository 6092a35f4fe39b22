# SPDX-License-Identifier: Apache-2.0
#
# The record of an atomic write may reach memory before the part of its log that is in free pages.
# file: kernel/core/data/atomic.c
# test: crash_atomic_test
s/^\t\tif (!w->zeroed \&\& sg_log_is_inside(&w->log))$/\t\tif (true)/
