# SPDX-License-Identifier: Apache-2.0
#
# The end of a file's use also ends the deferral of the next file with the same number.
# file: kernel/core/journal/ledger.c
# test: deferred_test
s/^	       (!ref->generation || e->kept == (u32)ref->generation);/	       true;/
