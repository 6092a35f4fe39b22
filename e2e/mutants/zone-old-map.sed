# SPDX-License-Identifier: Apache-2.0
#
# What a command has left is told from what another one is making by a map from before its lock.
# file: kernel/tools/ctl/wipe.c
# scenario: zone
# maps: walk
s/left = p && zone_tagged(p->tags, WIPING_TAG);/left = p != NULL;/
