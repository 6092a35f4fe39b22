# SPDX-License-Identifier: Apache-2.0
#
# A token of a node writes the state of other nodes.
# file: charts/stargate/templates/node-policy.yaml
# test: test/chart/TestNodeToken
s/variables\.was\[k\] == variables\.now\[k\]/true/
