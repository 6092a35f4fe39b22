# SPDX-License-Identifier: Apache-2.0
#
# A volume gets another UUID while other systems use it.
# file: kernel/core/volume/mkfs.c
# test: volume_test
s/if (!err && !sg_holds_alone(vol) && !sg_alone(vol))$/if (!err \&\& !vol)/
