# SPDX-License-Identifier: Apache-2.0
#
# A claim is reported before Kubernetes can bind it.
# file: csi-driver/internal/cluster/unbound.go
# test: internal/cluster/TestUnbound
s/u\.looks >= unboundLooks/u.looks >= 0/
