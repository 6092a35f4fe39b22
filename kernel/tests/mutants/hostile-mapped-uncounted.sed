# SPDX-License-Identifier: Apache-2.0
#
# A file may map more pages than there are.
# file: kernel/core/write.c
# test: hostile
s/if (mapped > all)/if (0)/
