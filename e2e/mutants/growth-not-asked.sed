# SPDX-License-Identifier: Apache-2.0
#
# A mount does not ask the other systems whether they have the memory for a growth.
# file: kernel/module/grow.c
# scenario: zone-resize
# maps: walk
s/err = sg_grow_ask(.*);/err = 0;/
