# SPDX-License-Identifier: Apache-2.0
#
# While a system removes a page from its own list, a reader sees an empty list, although other pages
# are bad.
# file: kernel/core/base/bad_pages.c
# test: bad_test
/^static void forget_own(/,/^}/s/sg_bad_watch(vol);/look_at(vol, false); sg_store64(\&vol->nown, 0);/
