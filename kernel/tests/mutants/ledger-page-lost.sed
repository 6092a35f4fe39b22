# SPDX-License-Identifier: Apache-2.0
#
# A ledger names its next page before there is memory for its mirror. Without memory, the page is
# lost.
# file: kernel/core/deferred/reclaim.c
# test: systems_death_test
/^static int add_page(/,/^}/s/if (!err)$/if (!err \&\& !page)\n\t\terr = -ENOMEM;\n\telse if (!err)/
s/err = page ? add_page(vol, l, page) : -ENOMEM;/err = add_page(vol, l, page);/
