# SPDX-License-Identifier: Apache-2.0
#
# The kernel and initrd of a VM, for KubeVirt's kernelBoot.
FROM scratch
COPY boot /boot
USER 107
