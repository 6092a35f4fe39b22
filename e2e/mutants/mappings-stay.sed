# SPDX-License-Identifier: Apache-2.0
#
# A system acknowledges an epoch while its mappings still have pages that were freed before that
# epoch.
# file: kernel/module/mmap.c
# scenario: stale
# maps: walk
/^static void sgfs_take_away_from(/,/^}/s/if (si->zap)/if (all \&\& si->zap)/
