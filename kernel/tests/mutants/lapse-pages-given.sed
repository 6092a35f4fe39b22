# SPDX-License-Identifier: Apache-2.0
#
# Pages that a fenced writer has taken are immediately given to another system.
# file: kernel/core/lock/lock.c
# test: lapse_test
s/^\treturn off >= vol->sb.chunk_off \&\& off < vol->sb.data_off \&\& sg_holder_lapses(vol, word);/\treturn off == 1 \&\& sg_holder_lapses(vol, word);/
