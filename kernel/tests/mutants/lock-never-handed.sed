# SPDX-License-Identifier: Apache-2.0
#
# Whoever gives a lock back hands it to nobody, however long others have waited.
# file: kernel/core/lock/lock.c
# test: lock_test
/^void sg_unlock(/,/^}/s/SG_LOCK_ASKED/SG_LOCK_DOUBT/
