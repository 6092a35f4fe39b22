# SPDX-License-Identifier: Apache-2.0
#
# A copy of a slot says whose its identity is by the word that was there when all else was copied.
# file: kernel/core/base/slots.c
# test: slot_test
s/^	out->named = named;/	(void)named;/
