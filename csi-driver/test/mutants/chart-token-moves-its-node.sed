# SPDX-License-Identifier: Apache-2.0
#
# A token may set the ranges of pod addresses of its Node.
# file: charts/stargate/templates/node-policy.yaml
# test: test/chart/TestNodeToken
s/(list "podCIDR" "podCIDRs" "providerID" "configSource")/(list "configSource")/
