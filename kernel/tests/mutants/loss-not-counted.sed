# SPDX-License-Identifier: Apache-2.0
#
# A repair does not report how many inodes it has lost.
# file: kernel/core/check/check_loss.c
# test: check_test
s/^	res->lost = c->expected - now;$/	return;/
