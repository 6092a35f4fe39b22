# SPDX-License-Identifier: Apache-2.0
#
# A leaf of 1 GiB that cannot be split undoes what the transaction has cut before it.
# file: kernel/core/table/table_cut.c
# test: table_test
s/if (err == -ENOSPC \&\& c->pages)/if (err == -ENOSPC \&\& !c->tx)/
