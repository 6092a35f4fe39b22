# SPDX-License-Identifier: Apache-2.0
#
# A system that is fenced while it stores a log in place stores the rest of the log when it
# continues.
# file: kernel/core/data/redo.c
# test: crash_paused_test
s/if (r ? !sg_may_replay(r) : !sg_is_ours(vol))/if (r \&\& !vol)/
