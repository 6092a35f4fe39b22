# SPDX-License-Identifier: Apache-2.0
#
# A system completes a truncation forever, because another system begins it again each time.
# file: kernel/core/data/truncate.c
# test: hostile
s/if (++\*turns > CUT_TURNS)/if (++*turns > ~0u - 1)/
