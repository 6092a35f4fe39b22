# SPDX-License-Identifier: Apache-2.0
#
# A system acknowledges an epoch while a thread still copies from pages that were freed before that
# epoch. Also, a read does not detect that the file was truncated during the read. Without this
# second change, the read would be repeated, which would hide the first.
# file: kernel/core/journal/epoch.c kernel/module/file.c
# scenario: stale
# maps: walk
/^void sg_quiesce(/,/^}/{/sg_look_wait();/d}
/^static ssize_t sgfs_read_locked(/,/^}/s/if (likely(cuts.*/if (likely(1 || cuts))/
