# SPDX-License-Identifier: Apache-2.0
#
# The time limit of a freeze is taken from the volume without a check.
# file: kernel/core/member/freeze.c
# test: freeze_test
s/SG_MIN(SG_FREEZE_LIMIT(word), SG_FREEZE_MAX_MS) \* MS/SG_FREEZE_LIMIT(word) * MS/
