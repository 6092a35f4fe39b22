# SPDX-License-Identifier: Apache-2.0
#
# If a leaf of 1 GiB cannot be split, the transaction's earlier cuts are undone.
# file: kernel/core/table/table_cut.c
# test: table_test
s/if (err == -ENOSPC \&\& c->pages)/if (err == -ENOSPC \&\& !c->tx)/
