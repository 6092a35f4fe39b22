# SPDX-License-Identifier: Apache-2.0
#
# The policy allows a VM more volumes than the webhook.
# file: charts/stargate/templates/kubevirt-policy.yaml
# test: test/chart/TestPolicy
s/variables\.claims\.size() <= 16/variables.claims.size() <= 17/
