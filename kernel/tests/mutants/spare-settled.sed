# SPDX-License-Identifier: Apache-2.0
#
# A file that the engine makes for itself is settled while it is in use.
# file: kernel/core/journal/ledger.c
# test: systems_opens_test
/^void sg_defer_kept/,/^}/s/, (u32)ref->generation)/, 0)/
