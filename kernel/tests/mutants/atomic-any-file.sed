# SPDX-License-Identifier: Apache-2.0
#
# A forged log writes to any file, whether the record has its change counter or not.
# file: kernel/core/data/redo.c
# test: atomic_log_test
s/if (sg_load64(&log\[-(int)i\].off) == SG_IOFF(ref, seq))/if (ref \&\& log)/
