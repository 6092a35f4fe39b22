# SPDX-License-Identifier: Apache-2.0
#
# A page in a locked chunk delays all other pages of its file's table.
# file: kernel/core/deferred/reclaim.c
# test: reclaim_busy_test
s/tx->pass_over = pass_over;/tx->pass_over = false \&\& pass_over;/
