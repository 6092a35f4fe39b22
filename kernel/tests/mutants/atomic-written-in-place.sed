# SPDX-License-Identifier: Apache-2.0
#
# A write without the lock stores into a file whose pages may be replaced.
# file: kernel/core/data/write.c
# test: atomic_test
s/!(sg_iget(vol, ref, genflags) >> 32 \& (SG_FL_ATOMIC | SG_FL_WHOLE | SG_FL_SEALED))) {/true) {/
