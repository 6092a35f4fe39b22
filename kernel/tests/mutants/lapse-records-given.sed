# SPDX-License-Identifier: Apache-2.0
#
# A free record that a fenced system was filling is used at once.
# file: kernel/core/inode/inode_record.c
# test: lapse_test
s/^\treturn word \&\& sg_holder_lapses(vol, word);/\treturn word == 1 \&\& sg_holder_lapses(vol, word);/
