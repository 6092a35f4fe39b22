# SPDX-License-Identifier: Apache-2.0
#
# Who says that he stands still is in the midst of a transaction.
# file: kernel/core/member/freeze.c
# test: freeze_test
s/while (turn & 1 && /while (0 \&\& turn \& 1 \&\& /
