# SPDX-License-Identifier: Apache-2.0
#
# A system goes on though another run of it has beaten in its slot.
# file: kernel/core/base/slots.c
# test: set_back_test
s/if (seen >= sg_load64(&vol->beats)) {/if (false) {/
