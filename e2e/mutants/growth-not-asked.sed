# SPDX-License-Identifier: Apache-2.0
#
# A mount answers yes, without asking, whether all other systems have memory for a growth.
# file: kernel/module/grow.c
# scenario: zone-resize
# maps: walk
s/err = sg_grow_ask(.*);/err = 0;/
