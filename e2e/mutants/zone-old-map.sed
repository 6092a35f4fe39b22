# SPDX-License-Identifier: Apache-2.0
#
# A map from before its lock decides which volume is a leftover and which one another command makes.
# file: kernel/tools/ctl/wipe.c
# scenario: zone
# maps: walk
s/left = p && zone_tagged(p->tags, WIPING_TAG);/left = p != NULL;/
