# SPDX-License-Identifier: Apache-2.0
#
# The token of the resizer may remove finalizers of volumes.
# file: charts/stargate/templates/node-policy.yaml
# test: test/chart/TestResizerToken
s/"variables\.labels\.size() == 0" "variables\.sameFinalizers" -}}/"variables.labels.size() == 0" -}}/
