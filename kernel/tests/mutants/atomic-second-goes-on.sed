# SPDX-License-Identifier: Apache-2.0
#
# An atomic write finds the flag that another one has just set, and does not wait.
# file: kernel/core/data/atomic_flag.c
# test: atomic_first_test
s/genflags) >> 32 & (SG_FL_REPLACE | SG_FL_TOLD);/genflags) >> 32 \& (SG_FL_REPLACE | SG_FL_TOLD | SG_FL_WHOLE | SG_FL_ATOMIC);/
