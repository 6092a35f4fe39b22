# SPDX-License-Identifier: Apache-2.0
#
# A driver that tells the cluster nothing may change nodes.
# file: charts/stargate/templates/rbac.yaml
# test: test/chart/TestClusterRoles
s/watch{{ if \.Values\.tellCluster }}, patch{{ end }}\]/watch, patch]/
