# SPDX-License-Identifier: Apache-2.0
#
# A flush makes one pass, and does not check whether pages have moved meanwhile.
# file: kernel/core/data/flush.c
# test: crash_flush_test
/^int sg_flush_moving/,/^}/s/same_places(vol, ref, &before))/same_places(vol, ref, \&before) || 1)/
