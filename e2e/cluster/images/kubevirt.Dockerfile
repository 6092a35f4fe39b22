# SPDX-License-Identifier: Apache-2.0
#
# KubeVirt's controllers, which are static programs, and a /tmp. They run without root's rights.
FROM scratch
ADD root.tar /
USER 1001
