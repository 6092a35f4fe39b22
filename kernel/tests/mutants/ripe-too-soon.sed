# SPDX-License-Identifier: Apache-2.0
#
# Deferred frees that were made while a system quiesced count as unread.
# file: kernel/core/deferred/reclaim.c
# test: ripe_test
s/^		l->quiesced = p->serial;/		l->quiesced = l->serial;/
