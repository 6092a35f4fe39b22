# SPDX-License-Identifier: Apache-2.0
#
# Who forgets a page of his own has those go on who just looked there: they find none, though there are others.
# file: kernel/core/base/bad_pages.c
# test: bad_test
/^static void forget_own(/,/^}/s/sg_bad_watch(vol);/look_at(vol, false); sg_store64(\&vol->nown, 0);/
