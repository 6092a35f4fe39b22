# SPDX-License-Identifier: Apache-2.0
#
# A mount that is asked whether all others have memory for a growth says yes.
# file: kernel/module/grow.c
# scenario: zone-resize
# maps: walk
s/err = sg_grow_ask(.*);/err = 0;/
