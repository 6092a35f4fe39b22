# SPDX-License-Identifier: Apache-2.0
#
# A search for the root takes as many steps as there can be inodes.
# file: kernel/core/dir/rename.c
# test: hostile
s/at\.ino != kept/(at.ino | kept)/
