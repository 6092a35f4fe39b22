# SPDX-License-Identifier: Apache-2.0
#
# The end of a longer label remains behind a shorter one.
# file: kernel/core/volume/mkfs.c
# test: volume_test
s/^\tmemset(sb->label, 0, sizeof(sb->label));$/\tsb->label[strlen(label)] = 0;/
