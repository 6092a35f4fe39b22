# SPDX-License-Identifier: Apache-2.0
#
# A leaving system first takes over all deferred frees of other slots.
# file: kernel/core/deferred/ledger_settle.c
# test: hostile
/^int sg_ledger_settle(/,/^}/s/if (vol->hurry || sg_settle_ends(vol))/if (sg_settle_ends(vol))/
