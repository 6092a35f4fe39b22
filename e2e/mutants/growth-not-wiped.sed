# SPDX-License-Identifier: Apache-2.0
#
# stargatectl does not wipe the memory that a volume grows into, which former volumes have used.
# file: kernel/tools/ctl/volume.c
# scenario: zone-resize
# maps: walk
s/int err = wipe_device(g->path, v->name), lock/int err = 0, lock/
