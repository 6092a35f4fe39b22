# SPDX-License-Identifier: Apache-2.0
#
# A receiver continues as long as a user forges the head.
# file: kernel/lib/ring.c
# test: ring_forged_test
s/++\*rounds > SG_RING_ROUNDS/++*rounds > ~0u - 1/
