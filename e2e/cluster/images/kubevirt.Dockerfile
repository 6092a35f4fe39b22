# SPDX-License-Identifier: Apache-2.0
#
# KubeVirt's controllers: static programs, run as nobody, and a /tmp for them.
FROM scratch
ADD root.tar /
USER 1001
