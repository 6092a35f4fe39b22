# SPDX-License-Identifier: Apache-2.0
#
# The locks of a dead system are free before its journal has been replayed.
# file: kernel/core/member/recovery.c
# test: crash_readers_test
/^bool sg_recover_slot/,/^}/{/if (sg_tx_replay(vol, slot, ours))/{N;d};s/^\tsg_log(/\tsg_tx_replay(vol, slot, 0);\n\tsg_log(/}
