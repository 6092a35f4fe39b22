# SPDX-License-Identifier: Apache-2.0
#
# A copy of a slot tells whose identity it has by a word of the copy, not by one loaded before.
# file: kernel/core/base/slots.c
# test: slot_test
s/^	out->named = named;/	(void)named;/
