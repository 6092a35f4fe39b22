# SPDX-License-Identifier: Apache-2.0
#
# A truncation that somebody begins anew each time is finished for ever.
# file: kernel/core/data/truncate.c
# test: hostile
s/if (++\*turns > CUT_TURNS)/if (++*turns > ~0u - 1)/
