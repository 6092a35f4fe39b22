# SPDX-License-Identifier: Apache-2.0
#
# All volumes settle by one queue of works, so a volume that waits can use up the queue's places.
# file: kernel/module/membership.c
# scenario: held-up
# maps: walk
s/fs->waiter, &fs->settle/sgfs_wq, \&fs->settle/
