# SPDX-License-Identifier: Apache-2.0
#
# A volume grows over memory of former volumes without wiping it.
# file: kernel/tools/ctl/volume.c
# scenario: zone-resize
# maps: walk
s/int err = wipe_device(g->path, v->name), lock/int err = 0, lock/
