# SPDX-License-Identifier: Apache-2.0
#
# Settling frees a file that the engine has made for itself and still uses.
# file: kernel/core/journal/ledger.c
# test: systems_opens_test
/^void sg_defer_kept/,/^}/s/, (u32)ref->generation)/, 0)/
