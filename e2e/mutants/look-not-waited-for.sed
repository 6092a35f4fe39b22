# SPDX-License-Identifier: Apache-2.0
#
# An epoch is acknowledged while somebody copies what was freed before it.
# A read does not notice either that the file was cut meanwhile: a second read would hide the fault.
# file: kernel/core/journal/epoch.c kernel/module/file.c
# scenario: stale
# maps: walk
/^void sg_quiesce(/,/^}/{/sg_look_wait();/d}
/^static ssize_t sgfs_read_locked(/,/^}/s/if (likely(cuts.*/if (likely(1 || cuts))/
