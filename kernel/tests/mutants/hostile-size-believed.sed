# SPDX-License-Identifier: Apache-2.0
#
# A size that no file can have is accepted.
# file: kernel/core/data/collapse.c
# test: hostile
s/if (j->size > SG_FILE_MAX)/if (j->size == ~0ULL)/
