# SPDX-License-Identifier: Apache-2.0
#
# The size may reach memory before the zeroed bytes that it covers.
# file: kernel/core/data/atomic.c
# test: crash_atomic_test
s/^\t\tif (!w->zeroed \&\& sg_log_is_inside(&w->log))$/\t\tif (sg_log_is_inside(\&w->log))/
