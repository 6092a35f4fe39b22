# SPDX-License-Identifier: Apache-2.0
#
# An atomic write waits for a flag, which is cleared and set again meanwhile. The write treats this
# wait as a wait for the new flag.
# file: kernel/core/data/atomic_flag.c
# test: atomic_first_test
/^static int note_told(/,/^}/s/sg_cuts(vol, ref) == cuts)/sg_cuts(vol, ref) >= cuts)/
