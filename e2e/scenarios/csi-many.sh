#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The CSI driver on a zone of reserved memory with many volumes. The test makes two hundred volumes
# at the same time, and deletes them at the same time. Then it makes and deletes further volumes one
# after another (SG_VOLUMES; SG_TEST_SCALE=long: ten thousand). At the end the driver and the node
# use no more resources than after a few volumes.
#
# suite: csi-vm
# rig: --guests 1 --cpus 2 --mem 1G --pages --no-mount --size 3328M --pkgs lvm2 --copy-in build/csi
# kernels: 6.12
# maps: walk
# limit: 43200
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=e2e/lib/csi.sh
source "$(dirname "$0")/../lib/csi.sh"

holds "a zone is made" "stargatectl zone create sm /dev/pmem0"
holds "the driver's metrics can be reached" "ip link set lo up"
dax_tests AtOnce OverTime
holds "no volume remains, so the zone can be destroyed" "stargatectl zone destroy sm"
# mk/test/repeat reads this line.
[[ -z ${SG_VOLUMES:-} ]] || passed "$SG_VOLUMES volumes were made and deleted"
finish
