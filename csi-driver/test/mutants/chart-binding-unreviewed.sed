# SPDX-License-Identifier: Apache-2.0
#
# No policy checks the bindings of schedulers.
# file: charts/stargate/templates/kubevirt-policy.yaml
# test: test/chart/TestRules
s/resources: \[pods\/binding, bindings\]}/resources: [bindings]}/
