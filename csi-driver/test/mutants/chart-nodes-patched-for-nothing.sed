# SPDX-License-Identifier: Apache-2.0
#
# A driver that does not report to the cluster may change nodes.
# file: charts/stargate/templates/rbac.yaml
# test: test/chart/TestClusterRoles
s/watch{{ if \.Values\.tellCluster }}, patch{{ end }}\]/watch, patch]/
