# SPDX-License-Identifier: Apache-2.0
#
# A policy refuses nothing.
# file: charts/stargate/templates/node-policy.yaml
# test: test/chart/TestPoliciesAreInForce
s/validationActions: \[Deny\]/validationActions: [Warn]/
