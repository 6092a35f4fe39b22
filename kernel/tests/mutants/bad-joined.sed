# SPDX-License-Identifier: Apache-2.0
#
# A system joins a volume although a page is bad that the complete volume needs.
# file: kernel/core/member/join.c
# test: bad_test
s/^	err = sg_bad_refuse(vol);$/	err = 0;/
