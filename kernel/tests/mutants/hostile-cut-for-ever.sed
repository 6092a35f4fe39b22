# SPDX-License-Identifier: Apache-2.0
#
# A truncation that another system begins again each time is completed for ever.
# file: kernel/core/data/truncate.c
# test: hostile
s/if (++\*turns > CUT_TURNS)/if (++*turns > ~0u - 1)/
