# SPDX-License-Identifier: Apache-2.0
#
# Who says that he stands still goes on with transactions.
# file: kernel/core/member/freeze.c
# test: freeze_kill_test
/sg_store64(&vol->still.closed, 1);/d
