# SPDX-License-Identifier: Apache-2.0
#
# What a command has left is told from what another one is making by a map from before its lock.
# file: kernel/tools/ctl/wipe.c
# scenario: zone
# maps: walk
s/if (is_left(z->name, p->volume)) {/if (z->name) {/
