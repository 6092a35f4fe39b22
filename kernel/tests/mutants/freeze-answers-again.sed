# SPDX-License-Identifier: Apache-2.0
#
# A system that has continued after the time limit again reports that it is frozen.
# file: kernel/core/member/freeze.c
# test: freeze_test
s/ && word != vol->still.answered//
