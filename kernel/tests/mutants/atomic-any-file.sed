# SPDX-License-Identifier: Apache-2.0
#
# Replay of a forged log writes to any file, also if the record does not have its change counter.
# file: kernel/core/data/redo.c
# test: atomic_log_test
s/if (sg_load64(&log\[-(int)i\].off) == SG_IOFF(ref, seq))/if (ref \&\& log)/
