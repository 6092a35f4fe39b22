# SPDX-License-Identifier: Apache-2.0
#
# If a policy fails, the API server admits every request.
# file: charts/stargate/templates/node-policy.yaml
# test: test/chart/TestConditions
s/failurePolicy: Fail/failurePolicy: Ignore/
