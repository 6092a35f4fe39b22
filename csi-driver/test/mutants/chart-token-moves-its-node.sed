# SPDX-License-Identifier: Apache-2.0
#
# A token may give its node the addresses of other pods.
# file: charts/stargate/templates/node-policy.yaml
# test: test/chart/TestNodeToken
s/(list "podCIDR" "podCIDRs" "providerID" "configSource")/(list "configSource")/
