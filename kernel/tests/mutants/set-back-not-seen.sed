# SPDX-License-Identifier: Apache-2.0
#
# A system continues although another run of the same system has sent heartbeats in its slot.
# file: kernel/core/base/slots.c
# test: set_back_test
s/if (seen >= sg_load64(&vol->beats)) {/if (false) {/
