# SPDX-License-Identifier: Apache-2.0
#
# No webhook reviews a change that turns a pod into the pod of a VM.
# file: charts/stargate/templates/kubevirt-webhook.yaml
# test: test/chart/TestRules
s/operations: \[CREATE, UPDATE\], resources: \[pods,/operations: [CREATE], resources: [pods,/
