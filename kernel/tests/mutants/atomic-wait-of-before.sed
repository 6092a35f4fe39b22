# SPDX-License-Identifier: Apache-2.0
#
# An atomic write has waited for a flag that was cleared meanwhile, and records that wait for the
# next flag.
# file: kernel/core/data/atomic_flag.c
# test: atomic_first_test
/^static int note_told(/,/^}/s/sg_cuts(vol, ref) == cuts)/sg_cuts(vol, ref) >= cuts)/
