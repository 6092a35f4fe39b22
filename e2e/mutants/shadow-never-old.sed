# SPDX-License-Identifier: Apache-2.0
#
# A window is kept, and a private table with it, when another system has cut pages off.
# file: kernel/module/data_path.c
# scenario: stale
# maps: shadow
/^static bool sgfs_data_path_is_same(/,/^}/s/si->map_cuts == smp_load_acquire(&record->cuts) &&/1 \&\&/
