# SPDX-License-Identifier: Apache-2.0
#
# Pages are replaced in a file to which other systems write without a lock.
# file: kernel/core/data/atomic.c
# test: atomic_test
s/sg_iget(w->vol, w->ref, genflags) >> 32 & SG_FL_REPLACE;/true;/
