# SPDX-License-Identifier: Apache-2.0
#
# A volume is joined that stands on bad memory.
# file: kernel/core/member/join.c
# test: bad_test
s/^	err = sg_bad_refuse(vol);$/	err = 0;/
