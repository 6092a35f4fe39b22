# SPDX-License-Identifier: Apache-2.0
#
# The webhook may read Secrets.
# file: charts/stargate/templates/kubevirt-webhook.yaml
# test: test/chart/TestClusterRoles
s/resources: \[persistentvolumeclaims, persistentvolumes, nodes\]/resources: [persistentvolumeclaims, persistentvolumes, nodes, secrets]/
