# SPDX-License-Identifier: Apache-2.0
#
# After a command has locked an incomplete volume, it does not check again whether the volume is
# incomplete. So it can remove a volume that another command has completed.
# file: kernel/tools/ctl/wipe.c
# scenario: zone
# maps: walk
s/left = p && zone_tagged(p->tags, WIPING_TAG);/left = p != NULL;/
