# SPDX-License-Identifier: Apache-2.0
#
# A system keeps a window and its private table after another system has truncated the file.
# file: kernel/module/data_path.c
# scenario: stale
# maps: shadow
/^static bool sgfs_data_path_is_same(/,/^}/s/si->map_cuts == smp_load_acquire(&record->cuts) &&/1 \&\&/
