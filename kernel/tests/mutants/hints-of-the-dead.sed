# SPDX-License-Identifier: Apache-2.0
#
# Pages that replay has freed get no hint.
# file: kernel/core/member/recovery.c
# test: space_test
/^	sg_space_doubt_hints(vol);/d
