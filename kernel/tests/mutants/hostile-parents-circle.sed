# SPDX-License-Identifier: Apache-2.0
#
# A search for the root takes up to as many steps as inodes can exist.
# file: kernel/core/dir/rename.c
# test: hostile
s/at\.ino != kept/(at.ino | kept)/
