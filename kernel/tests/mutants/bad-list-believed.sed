# SPDX-License-Identifier: Apache-2.0
#
# If a member empties the list, other members forget the bad pages that they have found.
# file: kernel/core/base/bad_pages.c
# test: bad_test
/^static bool known(/,/^}/s/(i - n < own)/(i - n < own \&\& false)/
