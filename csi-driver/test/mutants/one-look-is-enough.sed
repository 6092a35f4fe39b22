# SPDX-License-Identifier: Apache-2.0
#
# The driver reports a claim before Kubernetes can bind it.
# file: csi-driver/internal/cluster/unbound.go
# test: internal/cluster/TestUnbound
s/u\.looks >= unboundLooks/u.looks >= 0/
