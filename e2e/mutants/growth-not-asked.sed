# SPDX-License-Identifier: Apache-2.0
#
# A mount reports, without a check, that all other systems have memory for a growth.
# file: kernel/module/grow.c
# scenario: zone-resize
# maps: walk
s/err = sg_grow_ask(.*);/err = 0;/
