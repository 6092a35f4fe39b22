# SPDX-License-Identifier: Apache-2.0
#
# An atomic write finds the flag that another write has just set, and does not wait.
# file: kernel/core/data/atomic_flag.c
# test: atomic_first_test
s/return flags & NOTED && flags & TOLD;/return flags \& NOTED;/
