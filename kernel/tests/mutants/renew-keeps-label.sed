# SPDX-License-Identifier: Apache-2.0
#
# Behind a short label the end of a longer one stays.
# file: kernel/core/volume/mkfs.c
# test: volume_test
s/^\tmemset(sb->label, 0, sizeof(sb->label));$/\tsb->label[strlen(label)] = 0;/
