# SPDX-License-Identifier: Apache-2.0
#
# An epoch is acknowledged while mappings show pages that were freed before it.
# file: kernel/module/mmap.c
# scenario: stale
# maps: walk
/^static void sgfs_take_away_from(/,/^}/s/if (si->zap)/if (all \&\& si->zap)/
