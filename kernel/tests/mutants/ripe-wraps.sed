# SPDX-License-Identifier: Apache-2.0
#
# The serial numbers of deferred frees are compared as 32-bit numbers, which wrap.
# file: kernel/core/journal/ledger_priv.h
# test: ripe_serial_test
s/^	return e->kept <= l->quiesced;/	return (s32)(l->quiesced - e->kept) >= 0;/
