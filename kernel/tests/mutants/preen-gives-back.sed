# SPDX-License-Identifier: Apache-2.0
#
# Preening gives records and links back while what it leaves may refer to them.
# file: kernel/core/check/check.c
# test: check_test
/^enum ck_cure ck_giving/,/^}/s/c->unfixed ?/!c ?/
