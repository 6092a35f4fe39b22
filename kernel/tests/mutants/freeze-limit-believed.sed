# SPDX-License-Identifier: Apache-2.0
#
# How long one is to stand still is taken from the volume as it is.
# file: kernel/core/member/freeze.c
# test: freeze_test
s/SG_MIN(SG_FREEZE_LIMIT(word), SG_FREEZE_MAX_MS) \* MS/SG_FREEZE_LIMIT(word) * MS/
