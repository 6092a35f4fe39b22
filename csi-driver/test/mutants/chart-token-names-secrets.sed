# SPDX-License-Identifier: Apache-2.0
#
# A token may read Secrets by a volume that names them.
# file: charts/stargate/templates/node-policy.yaml
# test: test/chart/TestNodeToken
s/"nodePublish" "nodeStage" "nodeExpand"/"nodePublish" "nodeExpand"/
