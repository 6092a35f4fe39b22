# SPDX-License-Identifier: Apache-2.0
#
# The binding of a pod makes it the pod of a VM.
# file: charts/stargate/templates/kubevirt-policy.yaml
# test: test/chart/TestBindings
s/- expression: "false"/- expression: "true"/
