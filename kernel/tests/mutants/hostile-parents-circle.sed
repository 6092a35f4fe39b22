# SPDX-License-Identifier: Apache-2.0
#
# The way up to the root is followed as often as there is room for inodes.
# file: kernel/core/dir/rename.c
# test: hostile
s/at\.ino != kept/(at.ino | kept)/
