# SPDX-License-Identifier: Apache-2.0
#
# Routes to a peer that has left or died stay.
# file: kernel/net/address.c
# scenario: net
# maps: walk
s/^	if (e->routed && dev)$/	if (e->routed \&\& !dev)/
