# SPDX-License-Identifier: Apache-2.0
#
# Times that a file already has are stored again.
# file: kernel/core/inode/inode_record.c
# test: file_test
s/if (err || times_are(vol, ref, set, mtime, ctime, atime))/if (err || (0 \&\& times_are(vol, ref, set, mtime, ctime, atime)))/
