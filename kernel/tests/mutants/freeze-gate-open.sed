# SPDX-License-Identifier: Apache-2.0
#
# A system reports that it is frozen, but continues to make transactions.
# file: kernel/core/member/freeze.c
# test: freeze_test
/sg_store64(&vol->still.closed, 1);/d
