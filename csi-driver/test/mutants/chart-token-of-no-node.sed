# SPDX-License-Identifier: Apache-2.0
#
# A token that names no node may write volumes.
# file: charts/stargate/templates/node-policy.yaml
# test: test/chart/TestNodeToken
s/- expression: variables\.node != ''/- expression: 'true'/
