# SPDX-License-Identifier: Apache-2.0
#
# Whoever empties the list leads others to what they have found to be bad.
# file: kernel/core/base/bad_pages.c
# test: bad_test
/^static bool known(/,/^}/s/(i - n < own)/(i - n < own \&\& false)/
