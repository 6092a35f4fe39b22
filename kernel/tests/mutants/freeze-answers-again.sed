# SPDX-License-Identifier: Apache-2.0
#
# Who has gone on by himself says once more that he stands still.
# file: kernel/core/member/freeze.c
# test: freeze_test
s/ && word != vol->still.answered//
