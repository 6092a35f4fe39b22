# SPDX-License-Identifier: Apache-2.0
#
# Replay stores into a bad page.
# file: kernel/core/journal/tx.c
# test: bad_test
s/ \&\& !sg_is_lost(vol, off) \&\&/ \&\&/
