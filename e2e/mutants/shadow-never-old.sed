# SPDX-License-Identifier: Apache-2.0
#
# A window and its private table are kept after another system has cut pages off.
# file: kernel/module/data_path.c
# scenario: stale
# maps: shadow
/^static bool sgfs_data_path_is_same(/,/^}/s/si->map_cuts == smp_load_acquire(&record->cuts) &&/1 \&\&/
