# SPDX-License-Identifier: Apache-2.0
#
# Who leaves takes over all that others owed first.
# file: kernel/core/deferred/ledger_settle.c
# test: hostile
/^int sg_ledger_settle(/,/^}/s/if (vol->hurry || sg_settle_ends(vol))/if (sg_settle_ends(vol))/
