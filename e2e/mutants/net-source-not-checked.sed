# SPDX-License-Identifier: Apache-2.0
#
# The network accepts a packet from a peer with a source address that nobody has published.
# file: kernel/net/receive.c
# scenario: net
# maps: walk
s/^	if (!e || e->peer != p)$/	if (e \&\& e->peer != p)/
