# SPDX-License-Identifier: Apache-2.0
#
# No system knows of a copy through a window.
# A read does not notice either that the file was cut meanwhile: a second read would hide the fault.
# file: kernel/module/data_path.c kernel/module/file.c
# scenario: stale
# maps: shadow
/sgfs_copy_piece(struct inode/,/^}/{/sg_look_begin();/d;/sg_look_end();/d}
/^static ssize_t sgfs_read_locked(/,/^}/s/if (likely(cuts.*/if (likely(1 || cuts))/
