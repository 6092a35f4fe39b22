# SPDX-License-Identifier: Apache-2.0
#
# That a file is not used any more ends what is kept of the next file of its number.
# file: kernel/core/journal/ledger.c
# test: owed_test
s/^	       (!ref->generation || e->kept == (u32)ref->generation);/	       true;/
