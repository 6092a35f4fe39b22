# SPDX-License-Identifier: Apache-2.0
#
# What a machine boots, for KubeVirt's kernelBoot.
FROM scratch
COPY boot /boot
USER 107
