# SPDX-License-Identifier: Apache-2.0
#
# A policy that fails lets everything pass.
# file: charts/stargate/templates/node-policy.yaml
# test: test/chart/TestConditions
s/failurePolicy: Fail/failurePolicy: Ignore/
