# SPDX-License-Identifier: Apache-2.0
#
# The locks of the dead are free before his journal has been replayed.
<<<<<<< HEAD
# file: kernel/core/member/recovery.c
# test: systems_death_test
=======
# file: kernel/core/death.c
# test: crash_readers_test
>>>>>>> a0148d5 (kernel/tests: a slot that is free has nothing left to replay, at any store)
/^bool sg_recover_slot/,/^}/{/if (sg_tx_replay(vol, slot, ours))/{N;d};s/^\tsg_log(/\tsg_tx_replay(vol, slot, 0);\n\tsg_log(/}
