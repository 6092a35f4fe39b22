# SPDX-License-Identifier: Apache-2.0
#
# A system reports that it is frozen while a transaction is in progress.
# file: kernel/core/member/freeze.c
# test: freeze_test
s/while (turn & 1 && /while (0 \&\& turn \& 1 \&\& /
