# SPDX-License-Identifier: Apache-2.0
#
# Pages that are met again are damage, though the file has been changed meanwhile.
# file: kernel/core/data/read.c
# test: systems_range_test
s/if (m->counted && seq == m->seq && !(seq & 1))/if (seq || m->counted)/
