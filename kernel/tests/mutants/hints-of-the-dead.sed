# SPDX-License-Identifier: Apache-2.0
#
# What replay has freed nobody promises.
# file: kernel/core/member/recovery.c
# test: space_test
/^	sg_space_doubt_hints(vol);/d
