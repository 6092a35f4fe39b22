# SPDX-License-Identifier: Apache-2.0
#
# Each VM rings with the eventfd of the first one, so a receiver does not know its sender.
# file: kernel/tools/ctl/bells.c
# test: exchange_test
s/return send_to(&x->peer\[to\], other, x->peer\[other\].rung_by\[to\]);/return send_to(\&x->peer[to], other, x->peer[other].rung_by[0]);/
