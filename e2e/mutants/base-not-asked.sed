# SPDX-License-Identifier: Apache-2.0
#
# The module mounts a volume at any address, not only at its base.
# file: kernel/module/super.c
# scenario: node-identity
# maps: walk
s/if (vol->sb.phys != fs->mem.phys) {/if (!vol->sb.phys) {/
