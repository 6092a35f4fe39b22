# SPDX-License-Identifier: Apache-2.0
#
# A token may read Secrets by way of a volume.
# file: charts/stargate/templates/node-policy.yaml
# test: test/chart/TestNodeToken
s/"nodePublish" "nodeStage" "nodeExpand"/"nodePublish" "nodeExpand"/
