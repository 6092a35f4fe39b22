# SPDX-License-Identifier: Apache-2.0
#
# A member that empties the list makes others forget which pages they have found bad.
# file: kernel/core/base/bad_pages.c
# test: bad_test
/^static bool known(/,/^}/s/(i - n < own)/(i - n < own \&\& false)/
