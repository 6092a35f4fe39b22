# SPDX-License-Identifier: Apache-2.0
#
# Preening frees records and links while findings that it leaves may refer to them.
# file: kernel/core/check/check.c
# test: check_test
/^enum ck_cure ck_giving/,/^}/s/c->unfixed ?/!c ?/
