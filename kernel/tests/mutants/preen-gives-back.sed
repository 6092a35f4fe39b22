# SPDX-License-Identifier: Apache-2.0
#
# Preening frees records and links to which its remaining findings may refer.
# file: kernel/core/check/check.c
# test: check_test
/^enum ck_cure ck_giving/,/^}/s/c->unfixed ?/!c ?/
