# SPDX-License-Identifier: Apache-2.0
#
# A creator without free records takes the list of any area, and other creators take the list back.
# file: kernel/core/inode/inode_record.c
# test: lines
s/if (steal_surplus(tx, stolen))/if (steal_surplus(tx, stolen) || steal_list(tx, stolen))/
